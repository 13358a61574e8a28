package manifest_test

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/tool/manifest"
)

func TestRoles(t *testing.T) {
	m := parse(t, `kind: Role
metadata: {name: named}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: [a], verbs: [get, update]}
- {apiGroups: [apps], resources: [secrets], verbs: [list]}
- {apiGroups: [""], resources: [pods], verbs: [watch]}
---
kind: ClusterRole
metadata: {name: all}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
---
kind: Role
metadata: {name: other}
rules: [{apiGroups: [""], resources: [pods], verbs: ["*"]}]
`)
	if len(m.Roles) != 2 || m.Roles[0].String() != "Role/named" || m.Roles[1].String() != "ClusterRole/all" {
		t.Fatalf("got %v", m.Roles)
	}
	for _, c := range []struct {
		role   *manifest.Role
		verb   string
		byName bool
		want   bool
	}{
		{m.Roles[0], "get", true, true},
		{m.Roles[0], "get", false, false},
		{m.Roles[0], "list", true, false},
		{m.Roles[0], "watch", true, false},
		{m.Roles[1], "patch", false, true},
	} {
		if got := c.role.Allows(c.verb, c.byName); got != c.want {
			t.Errorf("%v allows %s (by name: %v): %v", c.role, c.verb, c.byName, got)
		}
	}
	if _, err := manifest.Parse([]byte("kind: Role\nmetadata: {name: r}\nrules:\n- {verbs: get}\n")); err == nil || !strings.Contains(err.Error(), "Role/r: line 4") {
		t.Errorf("a rule of the wrong type: %v", err)
	}
}
