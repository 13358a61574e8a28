package targets

import (
	"maps"
	"slices"
)

// Expand tells the set which variables the identity can see, and gives the
// targets that differ for it.
//
// A variable that is no longer among them stays in the targets that have it,
// as a list is no proof that a variable is gone; see Release.
func (s *Set) Expand(ids []string) (changed []Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.expands = slices.Sorted(slices.Values(ids)), true
	for _, key := range slices.Sorted(maps.Keys(s.wild)) {
		if s.put(s.given[key], nil, nil) {
			changed = append(changed, key)
		}
	}
	s.tame()
	return changed
}

// Wild tells whether there are targets that Expand changes, and whether they
// have been expanded.
func (s *Set) Wild() (wild, expanded bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.wild) > 0, s.expands
}

// tame forgets the list when no target needs it: nobody keeps it up to date. The
// lock is held.
func (s *Set) tame() {
	if len(s.wild) == 0 {
		s.listed, s.expands = nil, false
	}
}

// Release takes variables that are proven to be gone out of an expanded
// target. Those that are still listed stay in it: they may get a value, or the
// identity the right to read them.
func (s *Set) Release(key Key, ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unlisted := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		_, listed := slices.BinarySearch(s.listed, id)
		return listed
	})
	if t := s.given[key]; t != nil && len(unlisted) > 0 {
		s.put(t, nil, unlisted)
	}
}

// Recall brings variables into an expanded target as if they had been listed
// before: they stay in it until they are proven to be gone. It gives the target
// with them; those that it has no place for are left out.
func (s *Set) Recall(key Key, ids ...string) (*Target, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.given[key]; t != nil {
		s.put(t, ids, nil)
	}
	t, ok := s.targets[key]
	return t, ok
}

// expanded gives a target with the variables that are listed, recalled, or that
// it has already, but for those that are released.
func (s *Set) expanded(t *Target, recalled, released []string) *Target {
	if !s.expands || !t.Wildcard() {
		return t
	}
	ids := slices.Concat(s.listed, recalled)
	if before := s.targets[t.Key]; before != nil {
		for _, part := range before.Parts() {
			for id := range part.Expanded {
				if !slices.Contains(released, id) {
					ids = append(ids, id)
				}
			}
		}
	}
	return t.Expand(ids)
}
