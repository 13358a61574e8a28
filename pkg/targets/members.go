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
	return s.update(nil)
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
	if len(unlisted) > 0 {
		s.update(map[Key][]string{key: unlisted})
	}
}

// expanded gives a target with the variables that are listed or that it has
// already, but for those that are released.
func (s *Set) expanded(t *Target, released []string) *Target {
	if !s.expands || !t.Wildcard() {
		return t
	}
	ids := s.listed
	if before := s.targets[t.Key]; before != nil && len(before.Expanded) > 0 {
		kept := maps.Clone(before.Expanded)
		for _, id := range released {
			delete(kept, id)
		}
		ids = slices.AppendSeq(slices.Clone(ids), maps.Keys(kept))
	}
	return t.Expand(ids)
}
