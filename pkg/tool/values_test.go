package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadValuesAreNotShown wants errors without a byte of the values.
func TestBadValuesAreNotShown(t *testing.T) {
	for _, c := range []struct{ values, says string }{
		{"{\"v\":\n canary}", "line 2"},
		{`["canary"]`, "object"},
		{`{"v": 12345678}`, "the value of v is neither"},
		{`{"v": null}`, "the value of v is neither"},
		{`{"v": {"base64": "Y2FuYXJ5", "more": "canary"}}`, "the value of v is neither"},
		{`{"v": {"hex": "canary"}}`, "the value of v is neither"},
		{`{"v": {"base64": "canary!"}}`, "the value of v is not base64"},
		{`{"v": "canary", "v": "canary"}`, "the value of v is written twice"},
		{`{"v": "canary\ud800"}`, "surrogate"},
		{"{\"v\": \"canary\xff\"}", "not UTF-8; write"},
	} {
		refused(t, c.values, c.says, func(text string) error {
			_, err := parseValues([]byte(text))
			return err
		})
	}
	for _, c := range []struct{ values, says string }{
		{"- canary", "not a YAML mapping"},
		{"v: [canary]", "line 1: the value of v is neither"},
		{"v: {base64: canary!}", "line 1: the value of v is not base64"},
	} {
		refused(t, c.values, c.says, func(text string) error {
			path := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := ReadValues(path, nil)
			return err
		})
	}
}

func refused(t *testing.T, values, says string, read func(string) error) {
	t.Helper()
	err := read(values)
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%q: %v, want %q", values, err, says)
		return
	}
	for _, part := range []string{"canary", "Y2FuYXJ5", "12345678"} {
		if strings.Contains(err.Error(), part) {
			t.Errorf("the value is shown: %v", err)
		}
	}
}

func TestValuesAsTheyAre(t *testing.T) {
	values, err := parseValues([]byte(`{"text": "a\u00e9\ufffd", "bytes": {"base64": "3q2+7wA="}, "empty": ""}`))
	if err != nil || string(values["text"].Bytes()) != "aé\ufffd" || string(values["bytes"].Bytes()) != "\xde\xad\xbe\xef\x00" || values["empty"].Len() != 0 {
		t.Errorf("%v, got %q", err, values["text"].Bytes())
	}
}
