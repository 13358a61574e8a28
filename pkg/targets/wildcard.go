package targets

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// expandAll replaces the entries that stand for all variables by variables with the given
// ids, which are in ascending order, each once. In a Kubernetes Secret the alias is the id's DataKey. In a file, where forSecret
// is false, it is the id itself.
//
// Each alias is given once. Entries that name their variable come first. The holders,
// which already have their aliases, follow in their order, and then the ids in ascending
// order. Therefore the result depends only on the arguments. If an id has no alias for
// this reason, or its key is invalid, a warning names the id and the solution.
func expandAll(entries []Entry, ids, holders []string, forSecret bool) (expanded []Entry, warnings []string) {
	taken := map[string]string{} // alias → variable
	for _, e := range entries {
		if !e.All() {
			taken[e.Alias] = e.Variable
		}
	}
	held := holding(entries, holders, forSecret)
	for _, e := range entries {
		if !e.All() {
			expanded = append(expanded, e)
			continue
		}
		first, _ := slices.BinarySearch(ids, e.prefix())
		for _, id := range ids[first:] {
			if !e.matches(id) {
				break
			}
			alias, fault := aliasOf(id, forSecret, taken)
			if taken[alias] == id {
				continue // it has the same entry
			}
			if holder, ok := held[alias]; ok && holder != id && fault == "" {
				fault = alreadyNames(alias, holder)
			}
			if fault != "" {
				warnings = append(warnings, fmt.Sprintf("variable %q is left out: %s; give it a separate entry", id, fault))
				continue
			}
			taken[alias] = id
			expanded = append(expanded, Entry{Alias: alias, Variable: id, ContentType: e.ContentType})
		}
	}
	return expanded, warnings
}

// aliasOf finds the alias of a variable from a wildcard. It returns a fault if there is
// none, or if the variable cannot use it.
func aliasOf(id string, forSecret bool, taken map[string]string) (alias, fault string) {
	alias = id
	if forSecret {
		alias = DataKey(id)
		if fault := DataKeyFault(alias); fault != "" {
			return "", fmt.Sprintf("its data key %q %s", alias, fault)
		}
	} else if id == "*" {
		return "", "an entry of that alias would stand for all variables again"
	}
	if other, ok := taken[alias]; ok {
		return alias, alreadyNames(alias, other)
	}
	return alias, ""
}

func alreadyNames(alias, variable string) string {
	return fmt.Sprintf("%q already names variable %q", alias, variable)
}

// holding returns the variable that already has each alias.
func holding(entries []Entry, holders []string, forSecret bool) map[string]string {
	held := map[string]string{}
	wild := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return !e.All() })
	for _, id := range holders {
		if !slices.ContainsFunc(wild, func(e Entry) bool { return e.matches(id) }) {
			continue
		}
		if alias, fault := aliasOf(id, forSecret, held); fault == "" {
			held[alias] = id
		}
	}
	return held
}

// matches reports whether a wildcard entry includes a variable.
func (e Entry) matches(id string) bool { return strings.HasPrefix(id, e.prefix()) }

// prefix is what the variables of a wildcard entry begin with.
func (e Entry) prefix() string { return strings.TrimSuffix(e.Variable, "*") }

// CountEntries returns the number of the target's entries. It includes the entries of a
// Secret's groups, and the data keys on hold.
func (t *Target) CountEntries() (n int) {
	if t.Secret != nil {
		n = len(t.Secret.Hold)
	}
	for _, part := range t.Parts() {
		n += len(part.Entries)
	}
	return n
}

// Wildcard reports whether the target, or a group of its Secret, has an entry that stands
// for all variables. Expand replaces such entries.
func (t *Target) Wildcard() bool {
	return slices.ContainsFunc(t.Parts(), func(part *Target) bool { return slices.ContainsFunc(part.Entries, Entry.All) })
}

// NeedsList reports whether the target's variables depend on the list of variables. This is so
// if an entry stands for all variables, or may have a node-specific variable. Expand
// resolves it.
func (t *Target) NeedsList() bool {
	return t.Wildcard() || slices.ContainsFunc(t.Entries, func(e Entry) bool { return e.Override != "" })
}

// Templated reports whether a template makes the target or a part of it.
func (t *Target) Templated() bool {
	return slices.ContainsFunc(t.Parts(), func(part *Target) bool { return part.Format == FormatTemplate })
}

// Expand replaces each entry that stands for all variables by the variables with the
// given ids. In a file and in a group, their aliases are their ids, in ascending order.
// An entry of the target with the same alias takes precedence. In a Secret's map, the
// data keys are the ids with a dot for each character that a key cannot contain. A data
// key that the map names, a group makes or Hold lists stays unchanged. If two ids have
// the same key, a holder takes precedence. Holders are ids that the target already had,
// and the first one wins. Without a holder, the lesser id wins. LeftOut names the
// variables without a key.
//
// An entry that may have a node-specific variable uses it if the ids contain it, and
// otherwise the general one.
func (t *Target) Expand(ids []string, holders ...string) *Target {
	if !t.Wildcard() {
		none := func(string) bool { return false }
		return t.ChooseVariables(sets.New(ids...).Has, none)
	}
	return t.expand(slices.Compact(slices.Sorted(slices.Values(ids))), holders)
}

// expand is Expand for a target with a wildcard, and ids in ascending order, each once.
func (t *Target) expand(ids, holders []string) *Target {
	expanded := *t
	if t.Secret == nil {
		expanded.Entries, _ = expandAll(t.Entries, ids, nil, false) // drop warnings: the precedence is intended
	} else {
		s := *t.Secret
		expanded.Entries, s.LeftOut = s.expand(t.Entries, ids, holders)
		expanded.Secret = &s
	}
	expanded.Expanded = added(t.Entries, expanded.Entries)
	if n := expanded.CountEntries(); t.Secret != nil && n > MaxEntries {
		return t.Refused(TooManyEntries(n))
	}
	return &expanded
}

// expand replaces the entries that stand for all variables, including those in the
// Secret's groups, as expandAll does. A data key that a group makes stays the group's. A
// data key on hold stays unchanged. Each warning begins with ConjurMapKey and a colon.
func (s *Secret) expand(entries []Entry, ids, holders []string) (expanded []Entry, warnings []string) {
	groups, taken := s.Groups, make(map[string]string, len(s.Groups))
	s.Groups = nil
	for _, key := range s.Hold {
		taken[key] = "the faulty definition of the data key %q must be corrected first"
	}
	n := len(entries) + len(s.Hold)
	for _, t := range groups {
		taken[t.Group] = "the group %q already makes the data key"
		if t.Wildcard() && n <= MaxEntries { // otherwise the Secret is refused, whatever comes
			t = t.expand(ids, nil)
		}
		n += len(t.Entries)
		s.Groups = append(s.Groups, t)
	}
	named := make(map[string]bool, len(entries))
	for _, e := range entries {
		named[e.Alias] = true
	}
	all, warnings := expandAll(entries, ids, holders, true)
	for _, e := range all {
		if why, ok := taken[e.Alias]; ok && !named[e.Alias] {
			warnings = append(warnings, fmt.Sprintf("variable %q is left out: "+why+"; give it a separate entry", e.Variable, e.Alias))
			continue
		}
		expanded = append(expanded, e)
	}
	for i, w := range warnings {
		warnings[i] = ConjurMapKey + ": " + w
	}
	return expanded, warnings
}

// added returns the variables that no entry names, or nil if no entry stands for all
// variables.
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
