package records

import (
	"maps"
	"slices"

	"github.com/secretsync/syncer/pkg/targets"
)

// Expand says which variables the identity can see, and which of these are said
// to have no value.
//
// A variable that is no longer among them stays in the targets that have it,
// as a list is no proof that a variable is gone; see Release.
func (l *Lane) Expand(ids []string, unset map[string]bool) (changes []Change) {
	s := l.all()
	s.mu.Lock()
	defer s.mu.Unlock()
	l.listed, l.unset, l.expands = slices.Sorted(slices.Values(ids)), unset, true
	for _, n := range s.spaces { // what was refused for the list may fit the new one
		n.freed = true
	}
	for _, key := range slices.Sorted(maps.Keys(l.wild)) {
		r := s.records[key]
		if l.put(r, r.given, nil, nil) {
			changes = append(changes, Change{Key: key, Lane: l.name})
		}
	}
	l.tame()
	return changes
}

// Wild reports whether there are targets that Expand changes, and whether they
// have been expanded.
func (l *Lane) Wild() (wild, expanded bool) {
	s := l.all()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(l.wild) > 0, l.expands
}

// tame forgets the list when no target needs it: nobody keeps it up to date. The
// lock is held.
func (l *Lane) tame() {
	if len(l.wild) == 0 {
		l.listed, l.unset, l.expands = nil, nil, false
	}
}

// Release takes variables that are proven to be gone out of an expanded
// target. Those that are still listed stay in it: they may get a value, or the
// identity the right to read them.
func (l *Lane) Release(key targets.Key, ids ...string) {
	s := l.all()
	s.mu.Lock()
	defer s.mu.Unlock()
	unlisted := slices.DeleteFunc(slices.Clone(ids), l.lists)
	if l.keys[key] && len(unlisted) > 0 {
		r := s.records[key]
		l.put(r, r.given, nil, unlisted)
	}
}

// Recall brings variables into an expanded target as if they had been listed
// before: they stay in it until they are proven to be gone. It returns the
// target with them; those that it has no place for are left out.
func (l *Lane) Recall(key targets.Key, ids ...string) (*targets.Target, bool) {
	return l.note(key, ids, func(r *record) {
		for _, id := range ids {
			delete(r.fallen, id)
		}
	})
}

// Fall has a target read the general variables in the place of those of this
// node's own. It returns the target then. Those that are listed are watched:
// they may get a value, or the identity the right to read them.
func (l *Lane) Fall(key targets.Key, ids ...string) (*targets.Target, bool) {
	return l.note(key, nil, func(r *record) {
		if r.fallen == nil {
			r.fallen = map[string]bool{}
		}
		for _, id := range ids {
			r.fallen[id] = true
		}
	})
}

// note changes what the record of a target says of its variables, and returns the
// target that follows from it, with the recalled ones.
func (l *Lane) note(key targets.Key, recalled []string, change func(*record)) (*targets.Target, bool) {
	s := l.all()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.keys[key] {
		return nil, false
	}
	r := s.records[key]
	change(r)
	l.put(r, r.given, recalled, nil)
	return r.spec, true
}

// lists reports whether a variable is listed. The lock is held.
func (l *Lane) lists(id string) bool {
	_, listed := slices.BinarySearch(l.listed, id)
	return listed
}

// expanded returns a target with the variables that are listed, recalled, or
// that its record has already, but for those that are released.
func (l *Lane) expanded(r *record, t *targets.Target, recalled, released []string) *targets.Target {
	switch {
	case !l.expands || !t.Open():
		return t
	case !t.Wildcard():
		return l.overridden(r, t, recalled)
	}
	holders := slices.Clone(recalled) // first: after a restart only they say what a data key held
	if r.spec != nil {
		for _, part := range r.spec.Parts() {
			for _, id := range slices.Sorted(maps.Keys(part.Expanded)) {
				if !slices.Contains(released, id) {
					holders = append(holders, id)
				}
			}
		}
	}
	return t.Expand(slices.Concat(l.listed, holders), holders...)
}

// overridden returns a target with those variables of this node's own that are
// listed with a value, recalled, or that its record has already, but for those
// that have fallen.
func (l *Lane) overridden(r *record, t *targets.Target, recalled []string) *targets.Target {
	listed := func(id string) bool { return l.lists(id) && !l.unset[id] }
	use := func(id string) bool {
		there := listed(id) || slices.Contains(recalled, id) || r.spec != nil && r.spec.Uses(id)
		return there && !r.fallen[id]
	}
	settled := t.Override(use, func(id string) bool { return r.fallen[id] && listed(id) })
	maps.DeleteFunc(r.fallen, func(id string, _ bool) bool { return !listed(id) }) // another one of that name counts anew
	return settled
}
