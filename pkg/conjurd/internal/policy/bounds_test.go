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
		{"an id", "- !variable x" + long + "\n", "has 2049 bytes"},
		{"an id below a policy", "- !policy { id: p, body: [ !variable " + long + " ] }\n", "has 2050 bytes"},
		{"a reference", "- !grant { role: !group x" + long + ", member: !user a }\n", "has 2049 bytes"},
		{"an owner", "- !group { id: g, owner: !user x" + long + " }\n", "has 2049 bytes"},
		{"a privilege", "- !permit { role: !user a, privileges: [ x" + long + " ], resource: !group g }\n", "privilege of 2049 bytes"},
	} {
		_, err := Parse(Namespace{Account: "dev"}, []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
			t.Errorf("%s: %.400v", c.name, err)
		}
	}
	if _, err := Parse(Namespace{Account: "dev"}, []byte("- !variable "+long+"\n")); err != nil {
		t.Errorf("an id of %d bytes: %v", maxID, err)
	}
}
