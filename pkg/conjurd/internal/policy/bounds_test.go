package policy

import (
	"fmt"
	"strings"
	"testing"
)

func TestBounds(t *testing.T) {
	nested := func(levels int) string { // each level is ten times the one below
		text := "- &l0 [ !variable a ]\n"
		for i := range levels {
			text += fmt.Sprintf("- &l%d [ %s]\n", i+1, strings.Repeat(fmt.Sprintf("*l%d, ", i), 10))
		}
		return text
	}
	groups := "&list [ " + strings.Repeat("!group g, ", 1000) + "]"
	long := strings.Repeat("x", maxID)
	big := strings.Repeat("x", 1<<20)
	many := func(line string) string { // with a number for each
		var out strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&out, line, i)
		}
		return out.String()
	}
	for _, c := range []struct{ name, text, want string }{
		{"annotations", "- !variable { id: v, annotations: &all { " + many("a%d: x, ") + "} }\n" + many("- !variable { id: v%d, annotations: *all }\n"), "too long"},
		{"an annotation", "- !variable { id: v, annotations: &all { a: " + big + " } }\n" + many("- !variable { id: v%d, annotations: *all }\n"), "too long"},
		{"a list of texts", "- !variable { id: v, annotations: { a: &all " + big + ", b: [ " + strings.Repeat("*all, ", 1000) + "] } }\n", "too long"},
		{"layers", "- !host-factory { id: f, layers: &all [ " + many("!layer l%d, ") + "] }\n" + many("- !host-factory { id: f%d, layers: *all }\n"), "too long"},
		{"networks", "- !host { id: h, restricted_to: &all [ " + strings.Repeat("10.0.0.1, ", 1000) + "] }\n" + many("- !host { id: h%d, restricted_to: *all }\n"), "too long"},
		{"public keys", "- !user { id: u, public_keys: &all [ " + strings.Repeat("k, ", 1000) + "] }\n" + many("- !user { id: u%d, public_keys: *all }\n"), "too long"},
		{"long memberships", "- !grant { roles: &all [ " + many("!group "+long[:2000]+"%d, ") + "], member: !group g }\n" + strings.Repeat("- !grant { roles: *all, members: [ !group g, !group h ] }\n", 50), "too long"},
		{"long permissions", "- !permit { roles: &all [ " + many("!group "+long[:2000]+"%d, ") + "], privileges: [ a, b, c, d, e, f, g, h, i, j ], resources: [ !group a, !group b, !group c, !group d, !group e, !group f ] }\n", "too long"},
		{"statements", nested(6), "too long"},
		{"marks", strings.Repeat("-\n", 2*maxNodes+1), "too long"},
		{"unfolding", nested(9), "too long"},
		{"an anchor in itself", "- &a [ *a ]\n", "too long"},
		{"memberships", "- !grant { roles: " + groups + ", members: *list }\n", "too long"},
		{"permissions", "- !permit { roles: " + groups + ", privileges: [ a, b ], resources: *list }\n", "too long"},
	} {
		_, err := Parse(Namespace{Account: "dev"}, []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
			t.Errorf("%s: %.400v", c.name, err)
		}
	}
}

// TestBoundsOfIDs: an id counts with that of its policy.
func TestBoundsOfIDs(t *testing.T) {
	for name, text := range map[string]string{
		"an id":                "- !variable %s\n",
		"an id below a policy": "- !policy { id: p, body: [ !variable %s ] }\n",
		"a reference":          "- !grant { role: !group %s, member: !user a }\n",
		"an owner":             "- !group { id: g, owner: !user %s }\n",
		"a privilege":          "- !permit { role: !user a, privileges: [ %s ], resource: !group g }\n",
	} {
		for size := maxID - 1; size <= maxID+1; size++ {
			id, want := strings.Repeat("x", size), ""
			if strings.Contains(text, "id: p") {
				id = id[len("p/"):]
			}
			if size > maxID {
				want = "2049 bytes"
			}
			_, err := Parse(Namespace{Account: "dev"}, fmt.Appendf(nil, text, id))
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %d bytes: %.400v", name, size, err)
			}
		}
	}
}

// TestBoundsOfLists: the top list of statements has depth 0.
func TestBoundsOfLists(t *testing.T) {
	nested := func(text string) func(int) string {
		return func(n int) string { return fmt.Sprintf(text, strings.Repeat("[", n), strings.Repeat("]", n)) }
	}
	for _, c := range []struct {
		name string
		text func(int) string
		most int
		want string
	}{
		{"statements", func(n int) string { return strings.Repeat("- []\n", n) }, maxItems, "too long"},
		{"lists of statements", func(n int) string { return nested("- %s%s\n")(n) }, maxDepth, "nested too deeply"},
		{"bodies of policies", func(n int) string {
			return "- " + strings.Repeat("!policy { id: p, body: [ ", n) + strings.Repeat(" ] }", n)
		}, maxDepth, "nested too deeply"},
		{"lists of roles", func(n int) string { return nested("- !grant { roles: %s !group a %s, member: !user b }\n")(n + 1) }, maxDepth, "nested too deeply"},
		{"items of roles", func(n int) string {
			return "- !grant { roles: [ !group a" + strings.Repeat(", []", n-1) + " ], member: !user b }\n"
		}, maxItems, "too many items"},
		{"lists in an annotation", func(n int) string { return nested("- !variable { id: v, annotations: { a: %s%s } }\n")(n + 1) }, maxDepth, "too long or nested too deeply"},
	} {
		for n := c.most - 1; n <= c.most+1; n++ {
			_, err := Parse(Namespace{Account: "dev"}, []byte(c.text(n)))
			if (err == nil) != (n <= c.most) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d %s: %.400v", n, c.name, err)
			}
		}
	}
}
