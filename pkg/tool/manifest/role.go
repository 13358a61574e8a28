package manifest

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// Role is the part of a Role or ClusterRole that concerns Secrets.
type Role struct {
	Kind, Name string
	Rules      []Rule // about Secrets; at least one
}

// Rule contains permissions, in the fields of rbac.authorization.k8s.io/v1.
type Rule struct {
	APIGroups     []string `json:"apiGroups"`
	Resources     []string `json:"resources"`
	ResourceNames []string `json:"resourceNames"` // empty: of any name
	Verbs         []string `json:"verbs"`         // lower case; "*" is every verb
}

// String is the kind and the name, such as "Role/syncer".
func (r *Role) String() string { return r.Kind + "/" + r.Name }

// Allows reports whether the Role grants a verb for Secrets of any name, or, if byName is
// true, for some names.
func (r *Role) Allows(verb string, byName bool) bool {
	return slices.ContainsFunc(r.Rules, func(rule Rule) bool {
		return (byName || len(rule.ResourceNames) == 0) && (slices.Contains(rule.Verbs, verb) || slices.Contains(rule.Verbs, "*"))
	})
}

// addRole adds a Role or a ClusterRole that has rules for Secrets.
func (m *Manifest) addRole(kind string, node *yaml.Node) error {
	var object struct {
		Rules []Rule `json:"rules"`
	}
	role := &Role{Kind: kind, Name: nameIn(valueIn(node, "metadata"))}
	if err := decode(node, &object); err != nil {
		return within(role.String(), err)
	}
	for _, rule := range object.Rules {
		if has(rule.APIGroups, "") && has(rule.Resources, "secrets") {
			role.Rules = append(role.Rules, rule)
		}
	}
	if len(role.Rules) > 0 {
		m.Roles = append(m.Roles, role)
	}
	return nil
}

func has(list []string, word string) bool {
	return slices.Contains(list, word) || slices.Contains(list, "*")
}
