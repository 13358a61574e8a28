package actuators

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// TestARefusalSaysWhy in the words of the service or program: bounded, and in one line.
func TestARefusalSaysWhy(t *testing.T) {
	v := stepVersion()
	said := "fence 20261122t000009 is later\nthan yours\x1b[2J " + strings.Repeat("x", 20_000)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(said))
	}))
	defer service.Close()
	for name, send := range map[string]Send{
		"service": HTTP(service.URL, service.Client()),
		"program": Exec([]string{"SAID=" + said}, "/bin/sh", "-c", `printf %s "$SAID"; exit 77`),
	} {
		_, err := stepper(send).Apply(t.Context(), v)
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := err.Error()
		if !strings.Contains(text, "fence 20261122t000009 is later; than yours") || len(text) > longestReason+200 {
			t.Errorf("%s: %d bytes: %.300s", name, len(text), text)
		}
		if strings.ContainsAny(text, "\x1b\n") {
			t.Errorf("%s: it has what it must not have: %.300q", name, text)
		}
	}
}

// TestATextThatShowsAValueIsWithheld however the text spells the value.
func TestATextThatShowsAValueIsWithheld(t *testing.T) {
	const password, short, symbols = `pa"ss\wo/rd&Xq7-é9`, "k3y", "!?#$%&()"
	block := &pem.Block{Type: "PRIVATE KEY", Bytes: bytes.Repeat([]byte("a private key of many bytes; "), 9)}
	key := string(pem.EncodeToMemory(block))
	lines := strings.Split(strings.TrimSpace(key), "\n")
	quoted, _ := json.Marshal(map[string]string{"input": password})
	quotedKey, _ := json.Marshal(map[string]string{"input": key})
	message, _ := json.Marshal(map[string]any{"parts": map[string][]byte{"private": []byte(key)}})
	for name, c := range map[string]struct{ value, text string }{
		"exactly":                 {password, "cannot use " + password},
		"JSON":                    {password, string(quoted)},
		"JSON in JSON":            {password, strconv.Quote(string(quoted))},
		"a URL":                   {password, "?p=" + url.QueryEscape(password)},
		"HTML":                    {password, "<b>" + html.EscapeString(password) + "</b>"},
		"base64":                  {password, base64.StdEncoding.EncodeToString([]byte(password))},
		"base64 for URLs":         {password, base64.RawURLEncoding.EncodeToString([]byte(password))},
		"base64 with a prefix":    {password, base64.StdEncoding.EncodeToString([]byte("user:" + password))},
		"base64 with two more":    {password, base64.StdEncoding.EncodeToString([]byte("u:" + password))},
		"hex":                     {password, strings.ToUpper(hex.EncodeToString([]byte(password)))},
		"a part":                  {password, "near " + password[6:]},
		"other letters":           {password, strings.ToUpper(password)},
		"a character a line":      {password, strings.Join(strings.Split(password, ""), "\n")},
		"a key":                   {key, key},
		"a key with CRLF":         {key, strings.ReplaceAll(key, "\n", "\r\n")},
		"a key on one line":       {key, strings.Join(lines, " ")},
		"a key without its ends":  {key, strings.Join(lines[1:len(lines)-1], "")},
		"one line of a key":       {key, "near " + lines[2]},
		"a key as JSON":           {key, string(quotedKey)},
		"a key with two letters":  {key, strings.ReplaceAll(key, "\n", `\n`)},
		"the message":             {key, string(message)},
		"a short value":           {short, "the key k3y is unknown"},
		"a short value in quotes": {short, `"k3y"`},
		"only symbols":            {symbols, "cannot parse " + symbols},
	} {
		if got := withholdValues(c.text, [][]byte{[]byte("another value"), []byte(c.value)}, longestReason); got != withheld {
			t.Errorf("%s: shown as %q", name, got)
		}
	}
	for name, c := range map[string]struct{ value, text string }{
		"no value":               {"", "the service is busy"},
		"a reason":               {password, "the fence 20261122t000009 is later than yours"},
		"a short value in words": {"ate", "a later fence stands"},
		"a reason beside a key":  {key, "quota of 5 logins is used up; see https://example.com/limits?id=77"},
	} {
		if got := withholdValues(c.text, [][]byte{[]byte(c.value)}, longestReason); got != c.text {
			t.Errorf("%s: withheld: %q", name, got)
		}
	}
}

// TestBoundsOfShownValues: six letters or digits in a row show a part of a value, and a
// value of four bytes is shown within a word.
func TestBoundsOfShownValues(t *testing.T) {
	const long = "qwertzuiop"
	for text, shows := range map[string]bool{long[3:8]: false, long[3:9]: true, long[3:10]: true, "x" + long[4:10]: true} {
		if (withholdValues(text, [][]byte{[]byte(long)}, longestReason) == withheld) != shows {
			t.Errorf("%q shows %q: %t", text, long, !shows)
		}
	}
	for value, shows := range map[string]bool{"qw!": false, "qwe!": true, "qwer!": true} {
		if (withholdValues("a"+value+"b", [][]byte{[]byte(value)}, longestReason) == withheld) != shows {
			t.Errorf("%q is shown within a word: %t", value, !shows)
		}
	}
}

// TestAProgramsErrorsShowNoValue: its standard error goes to the log.
func TestAProgramsErrorsShowNoValue(t *testing.T) {
	v := stepVersion()
	body, err := json.Marshal(message{Parts: map[string][]byte{"password": v.Parts["password"].Bytes(), "user": []byte("connect")}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"cannot parse c4n-4ry\nbye\n": "rotation: hook: " + withheld + "\n",
		"cannot connect\nbye\n":       "rotation: hook: cannot connect\nrotation: hook: bye\n",
	} {
		var h head
		var out strings.Builder
		_, _ = h.Write([]byte(text))
		h.print(&out, "/usr/bin/hook", body)
		if out.String() != want {
			t.Errorf("%q is printed as %q", text, out.String())
		}
	}
}
