package targets_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/secretsync/syncer/pkg/targets"
)

// FuzzParseEntries: what is accepted is usable, and means the same when it is
// written again.
func FuzzParseEntries(f *testing.F) {
	for _, seed := range []string{
		"", "*", "- \"*\"", "- a/b/c", "- k: a/b\n  content-type: base64\n", "[a/b, {k: c/d}]", "- &x a/b\n- k: *x\n",
		"- null", "- k: null", "- - x", "- [a]: b", "- acct:variable:a/b", "- k: |\n    a\n    b\n", "- ? {a: b}\n  : c", "&x [*x]",
		"- 0x10\n- 1e3\n- 2024-01-01\n", "- !!binary aGVsbG8=", "- <<: {a: b}", "---\n- a\n---\n- b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entries, _, err := targets.ParseEntries(text, "")
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Error("an error without a text")
			}
			return
		}
		if len(entries) == 0 {
			t.Error("no entries and no error")
		}
		aliases := map[string]bool{}
		for _, e := range entries {
			if e.Alias == "" || e.Variable == "" || strings.HasSuffix(e.Variable, "/") || aliases[e.Alias] {
				t.Errorf("%q has the entry %q", text, e)
			}
			aliases[e.Alias] = true
		}
		assertSameAgain(t, entries)
	})
}

// assertSameAgain writes entries as YAML and parses them.
func assertSameAgain(t *testing.T, entries []targets.Entry) {
	t.Helper()
	var list strings.Builder
	for _, e := range entries {
		// An id that is written in full is cut once for each time it is read,
		// content-type cannot be written as an alias, and YAML text is UTF-8.
		if strings.Contains(e.Variable, ":variable:") || e.Alias == "content-type" || !utf8.ValidString(e.Alias+e.Variable) {
			return
		}
		fmt.Fprintf(&list, "- ? %s\n  : %s\n  content-type: %s\n", quote(e.Alias), quote(e.Variable), e.ContentType)
	}
	got, _, err := targets.ParseEntries(list.String(), "")
	if err != nil || !slices.Equal(got, entries) {
		t.Errorf("%q become %q, %v, by way of\n%s", entries, got, err, list.String())
	}
}

// quote writes text as a double-quoted YAML scalar, every rune escaped.
func quote(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, "\\U%08X", r)
	}
	return `"` + b.String() + `"`
}
