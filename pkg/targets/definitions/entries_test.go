package definitions_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

func text(alias, variable string) targets.Entry {
	return targets.Entry{Alias: alias, Variable: variable, ContentType: targets.ContentText}
}

func base64(alias, variable string) targets.Entry {
	return targets.Entry{Alias: alias, Variable: variable, ContentType: targets.ContentBase64}
}

func TestParseEntries(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []targets.Entry
	}{
		"id":                                    {"- a/b/c\n", []targets.Entry{text("c", "a/b/c")}},
		"id of one segment":                     {"- c", []targets.Entry{text("c", "c")}},
		"alias":                                 {"- k: a/b\n", []targets.Entry{text("k", "a/b")}},
		"alias with spaces":                     {"- \"my key\": a/b\n", []targets.Entry{text("my key", "a/b")}},
		"order is kept":                         {"- z/z\n- a: a/a\n- m/m\n", []targets.Entry{text("z", "z/z"), text("a", "a/a"), text("m", "m/m")}},
		"all":                                   {"*", []targets.Entry{text("*", "*")}},
		"all in a block scalar":                 {"*\n", []targets.Entry{text("*", "*")}},
		"all as a quoted scalar":                {"\"*\"", []targets.Entry{text("*", "*")}},
		"all as an item":                        {"- \"*\"", []targets.Entry{text("*", "*")}},
		"all as base64":                         {"- \"*\": \"*\"\n  content-type: base64\n", []targets.Entry{base64("*", "*")}},
		"content-type text":                     {"- k: a/b\n  content-type: text\n", []targets.Entry{text("k", "a/b")}},
		"content-type base64":                   {"- k: a/b\n  content-type: base64\n", []targets.Entry{base64("k", "a/b")}},
		"content-type first":                    {"- content-type: base64\n  k: a/b\n", []targets.Entry{base64("k", "a/b")}},
		"content-type empty":                    {"- k: a/b\n  content-type: ''\n", []targets.Entry{text("k", "a/b")}},
		"integer":                               {"- 123\n", []targets.Entry{text("123", "123")}},
		"octal integer":                         {"- k: 0010\n", []targets.Entry{text("k", "0010")}},
		"Boolean":                               {"- true\n", []targets.Entry{text("true", "true")}},
		"Boolean alias":                         {"- yes: a/b\n", []targets.Entry{text("yes", "a/b")}},
		"date":                                  {"- 2024-01-01\n", []targets.Entry{text("2024-01-01", "2024-01-01")}},
		"leading slash":                         {"- /a/b\n", []targets.Entry{text("b", "/a/b")}},
		"flow list":                             {"[a/b, {k: c/d}]", []targets.Entry{text("b", "a/b"), text("k", "c/d")}},
		"JSON":                                  {`[{"k": "c/d", "content-type": "base64"}]`, []targets.Entry{base64("k", "c/d")}},
		"comment":                               {"# note\n- a/b # note\n", []targets.Entry{text("b", "a/b")}},
		"anchor and alias":                      {"- &x a/b\n- k: *x\n", []targets.Entry{text("b", "a/b"), text("k", "a/b")}},
		"spaces in an id":                       {"- 'a/b c'\n", []targets.Entry{text("b c", "a/b c")}},
		"one variable, two aliases":             {"- k: a/b\n- l: a/b\n", []targets.Entry{text("k", "a/b"), text("l", "a/b")}},
		"longest name":                          {"- a/" + strings.Repeat("v", 126), []targets.Entry{text(strings.Repeat("v", 126), "a/"+strings.Repeat("v", 126))}},
		"longest name is counted in characters": {"- k: a/" + strings.Repeat("ä", 126), []targets.Entry{text("k", "a/"+strings.Repeat("ä", 126))}},
		"id in full":                            {"- acct:variable:a/b", []targets.Entry{text("b", "a/b")}},
		"id in full, colons":                    {"- k: acct:variable:a/key:value", []targets.Entry{text("k", "a/key:value")}},
		"kind without account":                  {"- k: variable:my-variable", []targets.Entry{text("k", "variable:my-variable")}},
		"colons of its own":                     {"- k: app/a:b:c", []targets.Entry{text("k", "app/a:b:c")}},
		"the word variable after a slash":       {"- k: app/a:variable:c", []targets.Entry{text("k", "app/a:variable:c")}},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := definitions.ParseEntries(c.in, "acct")
			if err != nil || len(warnings) > 0 {
				t.Fatalf("error %v, warnings %q", err, warnings)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestParseEntriesRefuses(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing":              {"", "list of secrets is empty"},
		"comment only":         {"# nothing\n", "list of secrets is empty"},
		"empty list":           {"[]", "list of secrets is empty"},
		"null":                 {"~", "not nothing"},
		"map":                  {"a: x/y\nb: x/z\n", "line 1: a list of secrets is wanted"},
		"scalar":               {"gibberish", `not "gibberish"`},
		"nested list":          {"- ok/path\n- - inner\n", "line 2: an item is"},
		"nested map":           {"- k:\n    a: b\n", `line 1: an item is "- alias: id": the value of "k" must be text, not a map`},
		"list as key":          {"- [a]: b\n", "the value of a key must be text"},
		"two aliases":          {"- a/b\n- k: a/b\n  l: c/d\n", `line 2: the item has 2 aliases (["k" "l"])`},
		"one alias twice":      {"- k: a/b\n  k: c/d\n", `"k" is written twice`},
		"content-type alone":   {"- content-type: text\n", "names no variable"},
		"empty item map":       {"- {}\n", "names no variable"},
		"null item":            {"- a/b\n-\n", "line 2: the item is empty"},
		"null variable":        {"- k: null\n", `alias "k" has no variable`},
		"empty variable":       {"- k: ''\n", `alias "k" has no variable`},
		"empty id":             {"- ''\n", "has no variable"},
		"empty alias":          {"- '': a/b\n", `the alias of "a/b" is empty`},
		"trailing slash":       {"- a/b/\n", `"a/b/" must not end in a slash`},
		"long name":            {"- a/" + strings.Repeat("v", 127), "longer than 126 characters"},
		"line feed in an id":   {"- k: \"a\\nb\"\n", `"a\nb" is not the id of a variable`},
		"NUL in an id":         {"- k: \"a\\0b\"\n", `"a\x00b" is not the id of a variable`},
		"dots for an id":       {"- k: ..\n", `".." is not the id of a variable`},
		"long id":              {"- k: " + strings.Repeat("a/", 3500) + "b\n", "too long for a request: it takes 14001 bytes"},
		"duplicate alias":      {"- k: a/b\n- x/y\n- k: c/d\n", `line 3: the alias "k" is already used on line 1`},
		"tab":                  {"-\ta/b\n", "not valid YAML"},
		"second document":      {"- a/b\n---\n- c/d\n", "more than one YAML document"},
		"foreign account":      {"- other:variable:a/b", `is of account "other", but the account in use is "acct"`},
		"alias in itself":      {"&x [*x]", "an item is"},
		"NUL is not YAML text": {"- a\x00b", "not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := definitions.ParseEntries(c.in, "acct")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, error %v, want one with %q", got, err, c.want)
			}
		})
	}
}

func TestParseEntriesReportsEveryItem(t *testing.T) {
	_, _, err := definitions.ParseEntries("- a/\n- ok/b\n-\n- k: {}\n", "")
	if err == nil {
		t.Fatal("no error")
	}
	for _, line := range []string{"line 1:", "line 3:", "line 4:"} {
		if !strings.Contains(err.Error(), line) {
			t.Errorf("%s is missing in: %v", line, err)
		}
	}
}

// TestQuotesSayThatAnIDHasSpaces: then nothing is missing.
func TestQuotesSayThatAnIDHasSpaces(t *testing.T) {
	if _, warnings, err := definitions.ParseEntries("- 'my password'\n", ""); err != nil || len(warnings) > 0 {
		t.Errorf("error %v, warnings %q", err, warnings)
	}
}

func TestParseEntriesWarns(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		entry    targets.Entry
	}{
		"unknown content-type":   {"- k: a/b\n  content-type: Base64\n", `line 1: "Base64" is not a content-type`, text("k", "a/b")},
		"missing colon":          {"- password apps/shop/db-password\n", `line 1: the alias "db-password" is read as the one variable "password apps/shop/db-password"; if a colon is missing`, text("db-password", "password apps/shop/db-password")},
		"missing item":           {"- user: a/b\n    password a/c\n", `the alias "user" is read as the one variable "a/b password a/c"`, text("user", "a/b password a/c")},
		"variable called a star": {"- k: '*'\n", `"k" is one variable called *; to get all variables write the item - "*"`, text("k", "*")},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := definitions.ParseEntries(c.in, "")
			if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], c.want) {
				t.Fatalf("error %v, warnings %q", err, warnings)
			}
			if !slices.Equal(got, []targets.Entry{c.entry}) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestWithPolicyPath(t *testing.T) {
	for _, c := range []struct{ path, variable, want string }{
		{"", "b", "b"},
		{"", "/b", "/b"},
		{"/", "b", "b"},
		{"app", "b", "app/b"},
		{"app/", "b", "app/b"},
		{"/app", "/b", "app/b"},
		{"/app/db/", "x/b", "app/db/x/b"},
		{"root", "*", "root/*"},
	} {
		in := []targets.Entry{text("k", c.variable)}
		got := definitions.WithPolicyPath(in, c.path)
		if got[0] != text("k", c.want) {
			t.Errorf("%q + %q: got %v", c.path, c.variable, got)
		}
		if in[0].Variable != c.variable {
			t.Errorf("%q + %q changed its argument", c.path, c.variable)
		}
	}
}
