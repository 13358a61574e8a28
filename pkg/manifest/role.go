package manifest

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// Role is an object of kind Role or ClusterRole, as far as it is about
// Secrets.
type Role struct {
	Kind, Name string
	Rules      []Rule // those about Secrets; at least one
}

// Rule is what is allowed with Secrets.
type Rule struct {
	Verbs []string // lower case; "*" is every verb
	Names []string // of the Secrets; none: of any name
}

// String is the kind and the name, such as "Role/syncer".
func (r *Role) String() string { return r.Kind + "/" + r.Name }

// Allows reports whether the Role has a verb for Secrets of any name, or, if
// byName, for some.
func (r *Role) Allows(verb string, byName bool) bool {
	return slices.ContainsFunc(r.Rules, func(rule Rule) bool {
		return (byName || len(rule.Names) == 0) && (slices.Contains(rule.Verbs, verb) || slices.Contains(rule.Verbs, "*"))
	})
}

// addRole takes a Role or a ClusterRole that is about Secrets.
func (m *Manifest) addRole(kind string, node *yaml.Node) error {
	var object struct {
		Metadata struct{ Name string }
		Rules    []struct {
			APIGroups     []string `yaml:"apiGroups"`
			Resources     []string
			ResourceNames []string `yaml:"resourceNames"`
			Verbs         []string
		}
	}
	if err := node.Decode(&object); err != nil {
		return within(kind+"/"+object.Metadata.Name, explain(err))
	}
	role := &Role{Kind: kind, Name: object.Metadata.Name}
	for _, rule := range object.Rules {
		if has(rule.APIGroups, "") && has(rule.Resources, "secrets") {
			role.Rules = append(role.Rules, Rule{rule.Verbs, rule.ResourceNames})
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
