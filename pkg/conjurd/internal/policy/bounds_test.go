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
	for _, c := range []struct{ name, text, want string }{
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
