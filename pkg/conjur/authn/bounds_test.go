package authn

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBoundsOfAnswers: the answer of a metadata service may have 64 KiB, and a token is
// taken to be valid for 12 days at most.
func TestBoundsOfAnswers(t *testing.T) {
	size := 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) }))
	t.Cleanup(service.Close)
	for less := -1; less <= 1; less++ {
		size = 64<<10 + less
		if body, err := askMetadata(t.Context(), "the service", service.URL, nil); (err == nil) != (less <= 0) || err == nil && len(body) != size {
			t.Errorf("the bound%+d: %d bytes, %v", less, len(body), err)
		}
	}
	for seconds, want := range map[string]time.Duration{
		"1048575": 1048575 * time.Second, "1048576": 1048576 * time.Second, "1048577": 1048576 * time.Second,
		`"60"`: time.Minute, "0": 0, "1.5": 0, "9223372036854775808": 0,
	} {
		token, valid, err := accessToken("the service", []byte(`{"access_token":"t","expires_in":`+seconds+`}`))
		if err != nil || valid != want || string(token.Bytes()) != "t" {
			t.Errorf("%s seconds are %v, %v", seconds, valid, err)
		}
	}
}

func TestLettersOfTokens(t *testing.T) {
	for text, ok := range map[string]bool{
		"azAZ09-_=.b.c": true, "..": true, "a.b": false, "a.b.c.d": false, "a.b c.d": false,
		"`.b.c": false, "{.b.c": false, "@.b.c": false, "[.b.c": false, "/.b.c": false, ":.b.c": false, "a.b.é": false,
	} {
		if err := checkToken("the service", []byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestNumbersOfWords in a file.
func TestNumbersOfWords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for text, most := range map[string]int{"": 0, " \n": 0, " a\n": 1, "a b": 2, "a b c": 3, "a\x00b": 3} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, may := range []int{1, 2} {
			words, err := readWords("API key", path, may)
			if (err == nil) != (1 <= most && most <= may) || err == nil && len(words) != most {
				t.Errorf("%q, of which %d words are allowed: %d, %v", text, may, len(words), err)
			}
		}
	}
}

// TestPartsOfLogins: the last three parts are the common name.
func TestPartsOfLogins(t *testing.T) {
	for login, want := range map[string]string{"c": "c|", "b/c": "c|b", "a/b/c": "c|a.b", "p/a/b/c": "a.b.c|p", "q/p/a/b/c": "a.b.c|q.p"} {
		name, prefix := splitLogin(login)
		if got := strings.Join([]string{name, prefix}, "|"); got != want {
			t.Errorf("%s: %s, want %s", login, got, want)
		}
	}
}
