package tool

import (
	"maps"
	"strings"
	"testing"
)

// TestBadValuesAreNotShown wants errors without a byte of the values.
func TestBadValuesAreNotShown(t *testing.T) {
	for _, c := range []struct{ values, says string }{
		{"{\"v\":\n canary: canary}", "not valid YAML or JSON"},
		{"{\"v\": canary", "not valid YAML or JSON"},
		{`["canary"]`, "not a mapping"},
		{"- canary", "not a mapping"},
		{`{"v": null}`, "the value of v is neither"},
		{`v:`, "line 1: the value of v is neither"},
		{`{"v": {"base64": "Y2FuYXJ5", "more": "canary"}}`, "the value of v is neither"},
		{`{"v": {"hex": "canary"}}`, "the value of v is neither"},
		{`{"v": {"base64": "canary!"}}`, "the value of v is not base64"},
		{`{"v": "canary", "v": "canary"}`, "the value of v is written twice"},
		{"v: canary\nv: canary", "line 2: the value of v is written twice"},
		{`{"v": "canary\ud800"}`, "surrogate"},
		{"{\"v\": \"canary\xff\"}", "not UTF-8; write"},
		{"v: [canary]", "line 1: the value of v is neither"},
		{"v: {base64: canary!}", "line 1: the value of v is not base64"},
		{"v: !!binary canary!", "line 1: the value of v is not base64"},
		{"v: [canary\nw: canary", "not valid YAML or JSON"},
	} {
		refused(t, c.values, c.says, func(text string) error {
			_, err := ReadValues("-", strings.NewReader(text))
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
	for text, want := range map[string]map[string]string{
		`{"text": "a\u00e9\ufffd", "pair": "\ud83d\ude00", "bytes": {"base64": "3q2+7wA="}, "empty": "", "port": 5432, "on": true}`: {
			"text": "aé\ufffd", "pair": "😀", "bytes": "\xde\xad\xbe\xef\x00", "empty": "", "port": "5432", "on": "true",
		},
		"text: aé\nbytes: {base64: 3q2+7wA=}\nempty: ''\nport: 5432\noctal: 0644\non: yes\nlines: |\n  a\n  b\n": {
			"text": "aé", "bytes": "\xde\xad\xbe\xef\x00", "empty": "", "port": "5432", "octal": "0644", "on": "yes", "lines": "a\nb\n",
		},
		"{a: &same b, \"c\": 'd', e: *same}": {"a": "b", "c": "d", "e": "b"},
		"":                                   {},
	} {
		values, err := ReadValues("-", strings.NewReader(text))
		got := map[string]string{}
		for id, value := range values {
			got[id] = string(value)
		}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, got %q", text, err, got)
		}
	}
}
