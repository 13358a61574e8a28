package conjur

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

const ofDev = "dev:variable:"

func jsonHeader(encoding string) http.Header {
	h := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	if encoding != "" {
		h.Set("Content-Encoding", encoding)
	}
	return h
}

func TestDecodeBatchOverwritesTheBody(t *testing.T) {
	body := []byte(`{"dev:variable:a":"c2VjcmV0\n"}`)
	values, bad, err := decodeBatch(jsonHeader("base64"), body, []string{"a"}, ofDev)
	if err != nil || len(bad) != 0 || string(values["a"].Bytes()) != "secret" {
		t.Fatalf("%q, %v, %v", values["a"].Bytes(), bad, err)
	}
	if !bytes.Equal(body, make([]byte, len(body))) {
		t.Errorf("left over: %q", body)
	}
}

func TestDecodeBatchGivesEachItsError(t *testing.T) {
	body := `{"dev:variable:a":"YQ==","dev:variable:b":"*","dev:variable:c":null,"dev:variable:d":"","dev:variable:f":"YQ\u003d="}`
	values, bad, err := decodeBatch(jsonHeader("base64"), []byte(body), []string{"a", "b", "c", "d", "e", "f"}, ofDev)
	if err != nil || len(values) != 1 || string(values["a"].Bytes()) != "a" {
		t.Errorf("%d values, %v", len(values), err)
	}
	for id, want := range map[string]error{"b": errNotBase64, "c": errNotBatch, "d": errEmpty, "e": errLacking, "f": errNotBase64} {
		if err := bad[id]; !errors.Is(err, want) || !strings.Contains(err.Error(), `variable "`+id+`"`) {
			t.Errorf("%s: %v, want %v", id, bad[id], want)
		}
	}
}

// TestDecodeListNamesTheReaders: variables with the same readers have one text; a reader is
// the owner or may execute.
func TestDecodeListNamesTheReaders(t *testing.T) {
	const body = `[{"id":"dev:variable:a","owner":"o","permissions":[{"privilege":"execute","role":"z"},{"privilege":"execute","role":"b"},{"privilege":"execute","role":"b"}]},` +
		`{"id":"dev:variable:b","owner":"o","permissions":[{"privilege":"execute","role":"b"},{"privilege":"read","role":"c"},{"privilege":"execute","role":"z"}]},` +
		`{"id":"dev:variable:c","owner":"o","permissions":[]},{"id":"dev:variable:d","owner":"o"},{"id":"dev:variable:e","permissions":[]}]`
	page, err := decodeList(jsonHeader(""), []byte(body), ofDev, 5)
	if want := map[string]string{"a": "o\nb\nz", "b": "o\nb\nz", "c": "o"}; err != nil || !maps.Equal(page.Readers, want) {
		t.Errorf("%q, %v, want %q", page.Readers, err, want)
	}
}

func TestNamedMissing(t *testing.T) {
	message := func(s string) []byte {
		b, _ := json.Marshal(map[string]any{"error": map[string]string{"code": "not_found", "message": s}})
		return b
	}
	for text, want := range map[string]string{
		"CONJ00076E Variable dev:variable:app/x is empty or not found.":                  "app/x",
		"CONJ00076E Variable dev:variable:is empty or not found. is empty or not found.": "is empty or not found.",
		"CONJ00076E Variable dev:variable:<&> is empty or not found.":                    "<&>",
		"CONJ00076E Variable dev:policy:app/x is empty or not found.":                    "",
		"CONJ00076E Variable app/x is empty or not found.":                               "",
		"CONJ00076E Variable dev:variable:app/x is empty":                                "",
	} {
		if id, ok := genuineMissing(jsonHeader(""), message(text), "dev"); id != want && ok || ok != (want != "") {
			t.Errorf("%s: %q, %v", text, id, ok)
		}
	}
}

// TestDecodeResource reads an answer of the genuine server, as it was recorded but for
// what the annotations say, and one whose newest value its own rotator has set.
func TestDecodeResource(t *testing.T) {
	const recorded = `{"created_at":"2026-11-21T02:08:53.175+00:00","id":"dev:variable:app/annotated","owner":"dev:policy:app","policy":"dev:policy:root",` +
		`"permissions":[{"privilege":"execute","role":"dev:user:alice","policy":"dev:policy:root"},{"privilege":"read","role":"dev:user:alice","policy":"dev:policy:root"}],` +
		`"annotations":[{"name":"rotation/rotator","value":"postgresql/password","policy":"dev:policy:root"},{"name":"rotation/ttl","value":"P1D","policy":"dev:policy:root"}],` +
		`"secrets":[{"version":1,"expires_at":null}]}`
	for body, expires := range map[string]bool{
		recorded: false,
		strings.Replace(recorded, `{"version":1,"expires_at":null}`, `{"version":1,"expires_at":null},{"version":2,"expires_at":"2026-11-22T02:08:53.000+00:00"}`, 1): true,
		strings.Replace(recorded, `{"version":1,"expires_at":null}`, `{"version":1,"expires_at":"2026-11-22T02:08:53.000+00:00"},{"version":2,"expires_at":null}`, 1): false,
	} {
		about, ok := decodeResource(&reply{status: http.StatusOK, header: jsonHeader(""), body: []byte(body)}, "dev:variable:app/annotated")
		if !ok || about.Expires != expires || len(about.Permissions) != 2 || about.Annotations[RotatorAnnotation] != "postgresql/password" || about.Annotations["rotation/ttl"] != "P1D" {
			t.Errorf("%s is %+v, %v", body, about, ok)
		}
		page, err := decodeList(jsonHeader(""), []byte("["+body+`,{"id":"dev:variable:b","annotations":[{"name":"description","value":"x"}]}]`), ofDev, 2)
		if err != nil || len(page.IDs) != 2 || len(page.Rotated) != 1 || page.Rotated[0] != "app/annotated" {
			t.Errorf("the list is %+v, %v", page, err)
		}
	}
}

// FuzzDecodeBatch checks the one thing that matters: what is given as a value
// is what the server sent for that very variable.
func FuzzDecodeBatch(f *testing.F) {
	for _, body := range []string{
		`{"dev:variable:a":"b25l\n","dev:variable:b":"dHdv\n"}`, `{"dev:variable:a":"one","dev:variable:b":"two"}`,
		`{"dev:variable:a":"AAEC\nAwQF\n"}`, `{"dev:variable:a":"b25\/\r\n"}`, `{"dev:variable:a":"\u0062"}`,
		`{"dev:variable:a":null}`, `{"dev:variable:a":1}`, `{"dev:variable:a":["x"]}`, `{"a":"x"}`, `[]`, `null`, `{`, ``,
		`{"dev:variable:a":"x","dev:variable:a":"y"}`, `{"dev:variable:a":"\\"}`, `{"dev:variable:a":"\ud800"}`, "{\"dev:variable:a\":\"\xff\"}",
	} {
		f.Add([]byte(body), true)
		f.Add([]byte(body), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, coded bool) {
		var want map[string]any
		parses := json.Unmarshal(body, &want) == nil
		valid := utf8.Valid(body)
		encoding := ""
		if coded {
			encoding = "base64"
		}
		values, bad, err := decodeBatch(jsonHeader(encoding), body, []string{"a", "b"}, ofDev)
		if err != nil {
			if len(values) != 0 || len(bad) != 0 {
				t.Fatalf("an error, and answers: %v", err)
			}
			return
		}
		if !parses || len(values)+len(bad) != 2 {
			t.Fatalf("%d values and %d errors for 2 variables", len(values), len(bad))
		}
		for id, v := range values {
			text, _ := want[ofDev+id].(string)
			if coded {
				b, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					t.Fatalf("%q is not base64", text)
				}
				text = string(b)
			}
			if valid && (string(v.Bytes()) != text || text == "") {
				t.Fatalf("got %q for %q", v.Bytes(), text)
			}
		}
	})
}

// FuzzAnswers checks that no other body makes a decoder panic or prove too
// much.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		`{"error":{"code":"not_found","message":"CONJ00076E Variable dev:variable:app/nope is empty or not found."}}`,
		`{"account":"dev","username":"admin"}`, `{"secrets":[{"id":"a","value":"v","status":200}]}`,
		`{"protected":"e30=","payload":"eyJpYXQiOjEsImV4cCI6MX0=","signature":"e30="}`, `{"iat":1e400,"exp":-1}`,
		`<html>CONJ00076E</html>`, `null`, `[]`, `{"error":null}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if id, ok := genuineMissing(jsonHeader(""), body, "dev"); ok {
			var answer struct{ Error struct{ Message string } }
			if err := json.Unmarshal(body, &answer); err != nil ||
				answer.Error.Message != "CONJ00076E Variable dev:variable:"+id+" is empty or not found." {
				t.Fatalf("%q names %q", body, id)
			}
		}
		decodeWhoami(body)
		messageCode(body)
		if tok, err := parseToken(bytes.Clone(body)); err == nil && tok.renew.After(tok.expire) {
			t.Fatal("renewed after it expires")
		}
		if life, _, _, err := readPayload(body); err == nil && (life < 0 || life > longestLife) {
			t.Fatalf("a life of %v", life)
		}
	})
}
