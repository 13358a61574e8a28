package definitions_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
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
		entries, _, err := definitions.ParseEntries(text, "")
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
	got, _, err := definitions.ParseEntries(list.String(), "")
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

// FuzzFromSecret: whatever a Secret says, what is taken from it is usable, and
// what is not has a reason.
func FuzzFromSecret(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "a: b", "a: {id: b, content-type: base64}", "'*': '*'", "'*': p/*\nx: p/y", "a: b\na: c", "a: 5\n~: x\n[k]: v", "- a", "a: [",
		`{"a":"b","` + strings.Repeat("k", 1500) + `":"c"}`, "a: &x b\nb: *x", "&a {x: *a}", "conjur-map: x\n..: y\n.: z", "<<: {a: b}",
		strings.Repeat("text ", 1000),
	} {
		f.Add(seed, "- u: p/a", "", "x", "", "deployment/a")
		f.Add(seed, "*", "json", "", "", seed)
		f.Add(seed, seed, seed, seed, seed, "statefulset/")
		f.Add(seed, "- a", "template", "", "cm/key", "daemonset/x,y")
	}
	f.Fuzz(func(t *testing.T, text, secrets, format, template, place, restart string) {
		def := definitions.SecretDefinition{
			Namespace: "ns", Name: "s", Map: text, HasMap: true,
			Annotations: map[string]string{
				"conjur.org/conjur-secrets.g": secrets, "conjur.org/secret-file-format.g": format, "conjur.org/secret-file-template.g": template,
				"conjur.org/secret-file-template-configmap.g": place, "conjur.org/restart-workloads": restart,
			},
		}
		target := definitions.FromSecret(def)
		keys := map[string]bool{}
		for _, e := range target.Entries {
			if !e.All() && (definitions.CheckDataKey(e.Alias) != nil || e.Alias == targets.ConjurMapKey || keys[e.Alias]) || e.Variable == "" {
				t.Errorf("the entry %q", e)
			}
			keys[e.Alias] = true
		}
		for _, g := range target.Secret.Groups {
			if g.Group != "g" || keys["g"] || len(g.Entries) == 0 || g.Template.ConfigMap.Namespace != "" && g.Template.ConfigMap.Namespace != "ns" {
				t.Errorf("the group %+v", g)
			}
		}
		for _, workload := range target.Secret.Restart {
			if again, err := definitions.ParseWorkloads(workload); err != nil || len(again) != 1 || again[0] != workload {
				t.Errorf("the workload %q", workload)
			}
		}
		if len(target.Entries)+len(target.Secret.Groups) == 0 && !target.Secret.HoldAll && !slices.Contains(target.Secret.Hold, "g") {
			t.Error("nothing is defined, and nothing held")
		}
		for _, fault := range target.Secret.Faults {
			if fault.Place == "" || fault.Why == "" || len(fault.String()) > 2000 {
				t.Errorf("the fault %.100q of %d bytes", fault, len(fault.String()))
			}
		}
		expanded := target.Expand([]string{"p/a", "p.a", "g", "x"})
		seen := map[string]bool{}
		for _, e := range expanded.Entries {
			if seen[e.Alias] || e.All() {
				t.Errorf("the expanded entry %q", e)
			}
			seen[e.Alias] = true
		}
	})
}
