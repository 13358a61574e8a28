package definitions

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

func readMap(text, account string) ([]targets.Entry, []string, error) {
	p := parseMap(text, account)
	return p.entries, p.warnings, errors.Join(p.errs...)
}

func TestParseConjurMap(t *testing.T) {
	one := []targets.Entry{{Alias: "A", Variable: "p/a", ContentType: targets.ContentText}}
	for _, c := range []struct {
		name, text string
		want       []targets.Entry
	}{
		{"an id", "A: p/a", one},
		{"JSON", `{"A": "p/a"}`, one},
		{"quoted", "\"A\": 'p/a'", one},
		{"a block scalar", "A: |-\n  p/a", one},
		{"an object", "A:\n  id: p/a", one},
		{"a full id", "A: acct:variable:p/a", one},
		{"a YAML alias", "A: &x p/a\nB: *x", []targets.Entry{{Alias: "A", Variable: "p/a", ContentType: targets.ContentText}, {Alias: "B", Variable: "p/a", ContentType: targets.ContentText}}},
		{"base64", "A: {id: p/a, content-type: base64}", []targets.Entry{{Alias: "A", Variable: "p/a", ContentType: targets.ContentBase64}}},
		{"an empty content type", "A:\n  id: p/a\n  content-type: ''", one},
		{"two keys for a variable", "B: p/a\nA: p/a", []targets.Entry{{Alias: "B", Variable: "p/a", ContentType: targets.ContentText}, {Alias: "A", Variable: "p/a", ContentType: targets.ContentText}}},
		{"keys that are no strings in YAML", "1: p/a\ntrue: p/b", []targets.Entry{{Alias: "1", Variable: "p/a", ContentType: targets.ContentText}, {Alias: "true", Variable: "p/b", ContentType: targets.ContentText}}},
		{"all", "'*': '*'", []targets.Entry{{Alias: "*", Variable: "*", ContentType: targets.ContentText}}},
		{"all, base64", "'*':\n  id: '*'\n  content-type: base64", []targets.Entry{{Alias: "*", Variable: "*", ContentType: targets.ContentBase64}}},
		{"all of a policy", "'*': p/*\nA: p/a", []targets.Entry{{Alias: "*", Variable: "p/*", ContentType: targets.ContentText}, {Alias: "A", Variable: "p/a", ContentType: targets.ContentText}}},
		{"a star for one variable", "'*': 'p/a b'", []targets.Entry{{Alias: "p.a.b", Variable: "p/a b", ContentType: targets.ContentText}}},
		{"no entries", "{}", nil},
		{"a comment", "# nothing", nil},
		{"nothing", "", nil},
		{"null", "~", nil},
	} {
		got, warnings, err := readMap(c.text, "acct")
		if err != nil || len(warnings) > 0 || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %q, %v; want %v", c.name, got, warnings, err, c.want)
		}
	}
}

func TestParseConjurMapWarns(t *testing.T) {
	for text, want := range map[string]string{
		"A: {id: p/a, content-type: gzip}":   `"gzip" is not a content-type; taken as text`,
		"A: {id: p/a, content-type: Base64}": `"Base64" is not a content-type; taken as text`,
		"A: {id: p/a, other: x}":             `"A" has an attribute "other", which is ignored`,
		"A: apps/user pass":                  `line 1: the data key "A" is read as the one variable "apps/user pass"; if a colon is missing, write "data key: id"`,
		"A: '*'":                             `"A" is one variable called *; to get all variables write "*": "*"`,
	} {
		entries, warnings, err := readMap(text, "")
		if err != nil || len(entries) != 1 || entries[0].ContentType != targets.ContentText || len(warnings) != 1 || !strings.Contains(warnings[0], want) {
			t.Errorf("%s: %v, %q, %v; want a warning with %q", text, entries, warnings, err, want)
		}
	}
}

// A faulty item is left out; the others are there, and all faults are told.
func TestParseConjurMapErrors(t *testing.T) {
	for text, want := range map[string]string{
		"p/a":                         `line 1: a map of data keys to variables is wanted, each "key: id", not "p/a"`,
		"- A: p/a":                    "not a list",
		"A: [":                        "not valid YAML",
		"A: p/a\n---\nB: p/b":         "more than one YAML document",
		"ok: v\nA: true":              `line 2: the variable of "A" must be text, not "true"; put quotes around it`,
		"ok: v\nA: 5":                 `must be text, not "5"`,
		"ok: v\nA:":                   `must be text, not nothing; write its id`,
		"ok: v\nA: [p/a]":             "must be text, not a list; write its id",
		"ok: v\nA: ''":                `the data key "A" has no variable`,
		"ok: v\nA: p/a/":              "must not end in a slash",
		"ok: v\nA: {id: ''}":          `the data key "A" has no variable`,
		"ok: v\nA: {id: 5}":           `must be text, not "5"`,
		"ok: v\nA: {id: {x: y}}":      "must be text, not a map",
		"ok: v\nA: {content-type: x}": `"A" has no id`,
		"ok: v\nA: {}":                `"A" has no id`,
		"ok: v\n~: p/a":               "a data key must be text",
		"ok: v\n[a]: p/a":             "a data key must be text, not a list",
		"ok: v\nok: w":                `the data key "ok" is already used on line 1`,
		"ok: v\na b: p/a":             `the data key "a b" has characters other than`,
		"ok: v\nä: p/a":               "has characters other than",
		"ok: v\n..x: p/a":             "begins with ..",
		"ok: v\n.: p/a":               "which Kubernetes does not allow",
		"ok: v\nconjur-map: p/a":      "is that of the map itself",
		"ok: v\n'': p/a":              "is empty",
		"ok: v\n" + strings.Repeat("k", 254) + ": p/a": "is longer than 253 bytes",
		"ok: v\nA: other:variable:p/a":                 `is of account "other"`,
	} {
		entries, _, err := readMap(text, "acct")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
		if strings.HasPrefix(text, "ok: ") && !reflect.DeepEqual(entries, []targets.Entry{{Alias: "ok", Variable: "v", ContentType: targets.ContentText}}) {
			t.Errorf("%s: %v, want the good entry alone", text, entries)
		}
	}
	_, _, err := readMap("A: 1\nB: p/b\nC: []", "")
	if err == nil || !strings.Contains(err.Error(), `"A"`) || !strings.Contains(err.Error(), `"C"`) {
		t.Errorf("error %v, want one for A and one for C", err)
	}
}
