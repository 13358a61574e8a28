package records

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/secretsync/syncer/pkg/targets"
)

// Expand updates the list of the variables that the identity can see. unset contains
// those among them that have no value, according to Conjur.
//
// A variable that is no longer listed stays in the targets that have it, because a list
// does not prove that a variable is gone. See Release.
func (l *Lane) Expand(ids []string, unset map[string]bool) (changes []Change) {
	s := l.wholeSet()
	s.mu.Lock()
	defer s.mu.Unlock()
	l.listed, l.unset, l.expands = slices.Sorted(slices.Values(ids)), unset, true
	for _, n := range s.spaces { // Secrets that were refused for the old list may fit the new one
		n.freed = true
	}
	for _, key := range slices.Sorted(maps.Keys(l.wild)) {
		r := s.records[key]
		if l.put(r, r.given, nil, nil) {
			changes = append(changes, Change{Key: key, Lane: l.name})
		}
	}
	l.dropUnusedList()
	return changes
}

// Wild reports whether Expand changes some targets, and whether they have been expanded.
func (l *Lane) Wild() (wild, expanded bool) {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(l.wild) > 0, l.expands
}

// dropUnusedList forgets the list if no target needs it, because then nobody updates it.
// The caller holds the lock.
func (l *Lane) dropUnusedList() {
	if len(l.wild) == 0 {
		l.listed, l.unset, l.expands = nil, nil, false
	}
}

// Release removes variables that are proven gone from an expanded target. Variables that
// are still listed stay: they may receive a value, or the identity may receive
// permission.
func (l *Lane) Release(key targets.Key, ids ...string) {
	s := l.wholeSet()
	s.mu.Lock()
	defer s.mu.Unlock()
	unlisted := slices.DeleteFunc(slices.Clone(ids), l.lists)
	if l.keys[key] && len(unlisted) > 0 {
		r := s.records[key]
		l.put(r, r.given, nil, unlisted)
	}
}

// Recall adds variables to an expanded target as if they had been listed before. They
// stay until they are proven gone. It returns the resulting target, without the variables
// that have no place in it.
func (l *Lane) Recall(key targets.Key, ids ...string) (*targets.Target, bool) {
	return l.updateRecord(key, ids, func(r *record) {
		for _, id := range ids {
			delete(r.fallen, id)
		}
	})
}

// FallBack makes a target read general variables instead of node-specific ones, and returns
// the target. It watches the listed ones: they may receive a value, or the identity may
// receive permission.
func (l *Lane) FallBack(key targets.Key, ids ...string) (*targets.Target, bool) {
	return l.updateRecord(key, nil, func(r *record) {
		if r.fallen == nil {
			r.fallen = map[string]bool{}
		}
		for _, id := range ids {
			r.fallen[id] = true
		}
	})
}

// updateRecord changes a target's record of its variables. It returns the resulting
// target, with the recalled variables.
func (l *Lane) updateRecord(key targets.Key, recalled []string, change func(*record)) (*targets.Target, bool) {
	s := l.wholeSet()
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

// lists reports whether a variable is listed. The caller holds the lock.
func (l *Lane) lists(id string) bool {
	_, listed := slices.BinarySearch(l.listed, id)
	return listed
}

// expanded returns a target with the variables that are listed, recalled, or already in
// its record, without the released ones.
func (l *Lane) expanded(r *record, t *targets.Target, recalled, released []string) *targets.Target {
	switch {
	case !l.expands || !t.NeedsList():
		return t
	case !t.Wildcard():
		return l.overridden(r, t, recalled)
	}
	holders := slices.Clone(recalled) // first: only they keep their data keys after a restart
	left := sets.New(released...)
	if r.spec != nil {
		for _, part := range r.spec.Parts() {
			for _, id := range slices.Sorted(maps.Keys(part.Expanded)) {
				if !left.Has(id) {
					holders = append(holders, id)
				}
			}
		}
	}
	valued := slices.DeleteFunc(slices.Clone(l.listed), func(id string) bool { return l.unset[id] })
	return t.Expand(slices.Concat(valued, holders), holders...)
}

// overridden returns a target with its node-specific variables, without those that have
// fallen. It includes variables that are listed with a value, recalled, or already in the
// record.
func (l *Lane) overridden(r *record, t *targets.Target, recalled []string) *targets.Target {
	listed, added := func(id string) bool { return l.lists(id) && !l.unset[id] }, sets.New(recalled...)
	use := func(id string) bool {
		there := listed(id) || added.Has(id) || r.spec != nil && r.spec.Uses(id)
		return there && !r.fallen[id]
	}
	settled := t.ChooseVariables(use, func(id string) bool { return r.fallen[id] && listed(id) })
	maps.DeleteFunc(r.fallen, func(id string, _ bool) bool { return !listed(id) }) // a new one starts afresh
	return settled
}
