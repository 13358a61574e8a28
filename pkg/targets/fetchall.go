package targets

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// secretKey is the data key under which a Kubernetes Secret holds a variable
// that no map names: its id, with a dot for each character that data keys
// cannot have, as the Secrets Provider does it. Not every id gives a key that
// Kubernetes takes.
func secretKey(variable string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-._", r) || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '.'
	}, variable)
}

// secretKeyFault returns why a Secret's data cannot have a key; "" when it can.
func secretKeyFault(key string) string {
	switch {
	case key == "":
		return "is empty"
	case key == ConjurMapKey:
		return "is that of the map itself"
	case key != secretKey(key):
		return "has characters other than letters, digits, -, _ and ."
	case key == "." || strings.HasPrefix(key, ".."):
		return "is . or begins with .., which Kubernetes does not allow"
	case len(key) > validation.DNS1123SubdomainMaxLength:
		return fmt.Sprintf("is longer than %d bytes", validation.DNS1123SubdomainMaxLength)
	}
	return ""
}

// expandAll puts the variables with the given ids in the place of the entries
// that stand for all variables. In a Kubernetes Secret an alias is the id's
// secretKey; in a file, when forSecret is false, the id itself.
//
// An alias is given once: entries that name their variable come first, then
// ids in ascending order, so that the result depends on nothing but the
// arguments. A warning names each id that is left out for that, or because it
// makes no key, together with what to do.
func expandAll(entries []Entry, ids []string, forSecret bool) (expanded []Entry, warnings []string) {
	taken := map[string]string{} // alias → variable
	for _, e := range entries {
		if !e.All() {
			taken[e.Alias] = e.Variable
		}
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for _, e := range entries {
		if !e.All() {
			expanded = append(expanded, e)
			continue
		}
		prefix := strings.TrimSuffix(e.Variable, "*")
		for _, id := range ids {
			if !strings.HasPrefix(id, prefix) {
				continue
			}
			alias, fault := aliasOf(id, forSecret, taken)
			if taken[alias] == id {
				continue // it has that very entry
			}
			if fault != "" {
				warnings = append(warnings, fmt.Sprintf("variable %q is left out: %s; give it an entry of its own", id, fault))
				continue
			}
			taken[alias] = id
			expanded = append(expanded, Entry{Alias: alias, Variable: id, ContentType: e.ContentType})
		}
	}
	return expanded, warnings
}

// aliasOf finds the alias of one of all variables, or says why it has none, or
// why it cannot use it.
func aliasOf(id string, forSecret bool, taken map[string]string) (alias, fault string) {
	alias = id
	if forSecret {
		alias = secretKey(id)
		if fault := secretKeyFault(alias); fault != "" {
			return "", fmt.Sprintf("its data key %q %s", alias, fault)
		}
	} else if id == "*" {
		return "", "an entry of that alias would stand for all variables again"
	}
	if other, ok := taken[alias]; ok {
		return alias, fmt.Sprintf("%q already names variable %q", alias, other)
	}
	return alias, ""
}

// Wildcard reports whether the target has an entry that stands for all
// variables, in a group of its Secret too; Expand replaces it.
func (t *Target) Wildcard() bool {
	return slices.ContainsFunc(t.Parts(), func(part *Target) bool { return slices.ContainsFunc(part.Entries, Entry.All) })
}

// Open reports whether only the list of variables says which ones the target
// has: an entry stands for all, or may have one of this node's own. Expand
// settles it.
func (t *Target) Open() bool {
	return t.Wildcard() || slices.ContainsFunc(t.Entries, func(e Entry) bool { return e.Override != "" })
}

// Templated reports whether a template makes the target, or a part of it.
func (t *Target) Templated() bool {
	return slices.ContainsFunc(t.Parts(), func(part *Target) bool { return part.Format == FormatTemplate })
}

// Expand returns the target with the variables of the given ids in the place of
// each entry that stands for all variables. In a file and in a group that is
// under their ids and in ascending order, and an entry of the target that has
// such an id for alias wins. In a Secret's map it is under data keys: the ids
// with a dot for each character that such a key cannot have. A data key that the
// map names, a group makes or Hold lists stays theirs, and of two ids with one
// key the lesser has it; LeftOut names the variables that have none.
//
// An entry that may have a variable of this node's own has it if that is among
// the ids, and else the general one.
func (t *Target) Expand(ids []string) *Target {
	if !t.Wildcard() {
		none := func(string) bool { return false }
		return t.overridden(func(id string) bool { return slices.Contains(ids, id) }, none)
	}
	expanded := *t
	if t.Secret == nil {
		expanded.Entries, _ = expandAll(t.Entries, ids, false) // warns of what an entry wins over, which is meant
	} else {
		s := *t.Secret
		var content secretContent
		content, s.LeftOut = secretContent{Entries: t.Entries, Groups: s.Groups, Hold: s.Hold}.expand(ids)
		expanded.Entries, s.Groups, expanded.Secret = content.Entries, content.Groups, &s
	}
	expanded.Expanded = added(t.Entries, expanded.Entries)
	return &expanded
}

// added are the variables that no entry names; nil when none of the entries
// stands for all variables.
func added(entries, expanded []Entry) map[string]bool {
	if !slices.ContainsFunc(entries, Entry.All) {
		return nil
	}
	named := make(map[string]bool, len(entries))
	for _, e := range entries {
		named[e.Variable] = true
	}
	more := map[string]bool{}
	for _, e := range expanded {
		if !named[e.Variable] {
			more[e.Variable] = true
		}
	}
	return more
}
