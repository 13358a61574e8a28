package targets

import (
	"fmt"
	"slices"
	"strings"
)

// expandAll puts the variables with the given ids in the place of the entries
// that stand for all variables. In a Kubernetes Secret an alias is the id's
// DataKey; in a file, when forSecret is false, the id itself.
//
// An alias is given once: entries that name their variable come first, then
// the holders, which have theirs already, in their order, then ids in ascending
// order, so that the result depends on nothing but the arguments. A warning names
// each id that is left out for that, or because it makes no key, together with
// what to do.
func expandAll(entries []Entry, ids, holders []string, forSecret bool) (expanded []Entry, warnings []string) {
	taken := map[string]string{} // alias → variable
	for _, e := range entries {
		if !e.All() {
			taken[e.Alias] = e.Variable
		}
	}
	held := holding(entries, holders, forSecret)
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for _, e := range entries {
		if !e.All() {
			expanded = append(expanded, e)
			continue
		}
		for _, id := range ids {
			if !e.matches(id) {
				continue
			}
			alias, fault := aliasOf(id, forSecret, taken)
			if taken[alias] == id {
				continue // it has that very entry
			}
			if holder, ok := held[alias]; ok && holder != id && fault == "" {
				fault = alreadyNames(alias, holder)
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

// holding returns which variable has which alias already.
func holding(entries []Entry, holders []string, forSecret bool) map[string]string {
	held := map[string]string{}
	for _, id := range holders {
		if !slices.ContainsFunc(entries, func(e Entry) bool { return e.All() && e.matches(id) }) {
			continue
		}
		if alias, fault := aliasOf(id, forSecret, held); fault == "" {
			held[alias] = id
		}
	}
	return held
}

// matches reports whether an entry that stands for all variables, or all below a
// path, stands for one.
func (e Entry) matches(id string) bool {
	return strings.HasPrefix(id, strings.TrimSuffix(e.Variable, "*"))
}

// CountEntries is how many entries the target has, those of a Secret's groups, and
// the data keys that are held, included.
func (t *Target) CountEntries() (n int) {
	if t.Secret != nil {
		n = len(t.Secret.Hold)
	}
	for _, part := range t.Parts() {
		n += len(part.Entries)
	}
	return n
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
// map names, a group makes or Hold lists stays theirs. Of two ids with one key the
// one has it that comes first among the holders, which are ids that the target had
// already, and else the lesser; LeftOut names the variables that have none.
//
// An entry that may have a variable of this node's own has it if that is among
// the ids, and else the general one.
func (t *Target) Expand(ids []string, holders ...string) *Target {
	if !t.Wildcard() {
		none := func(string) bool { return false }
		return t.Override(func(id string) bool { return slices.Contains(ids, id) }, none)
	}
	expanded := *t
	if t.Secret == nil {
		expanded.Entries, _ = expandAll(t.Entries, ids, nil, false) // warns of what an entry wins over, which is meant
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

// expand puts the variables of the given ids in the place of the entries that
// stand for all variables, as expandAll does it, and in the Secret's groups. A
// data key that a group makes stays the group's, and one that is held is left
// alone. Each warning begins with ConjurMapKey and a colon.
func (s *Secret) expand(entries []Entry, ids, holders []string) (expanded []Entry, warnings []string) {
	groups, taken := s.Groups, make(map[string]string, len(s.Groups))
	s.Groups = nil
	for _, key := range s.Hold {
		taken[key] = "what is wrong with the definition of the data key %q must be mended first"
	}
	for _, t := range groups {
		taken[t.Group] = "the group %q already makes the data key"
		if t.Wildcard() {
			t = t.Expand(ids)
		}
		s.Groups = append(s.Groups, t)
	}
	named := make(map[string]bool, len(entries))
	for _, e := range entries {
		named[e.Alias] = true
	}
	all, warnings := expandAll(entries, ids, holders, true)
	for _, e := range all {
		if why, ok := taken[e.Alias]; ok && !named[e.Alias] {
			warnings = append(warnings, fmt.Sprintf("variable %q is left out: "+why+"; give it an entry of its own", e.Variable, e.Alias))
			continue
		}
		expanded = append(expanded, e)
	}
	for i, w := range warnings {
		warnings[i] = ConjurMapKey + ": " + w
	}
	return expanded, warnings
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
