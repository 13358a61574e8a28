package targets

import (
	"maps"
	"reflect"
	"slices"
	"sync"
)

// Set is the targets that are kept in sync now. It is safe for use by several
// goroutines; the zero Set is empty and ready. Look-ups answer in the order
// of the keys.
//
// Targets with an entry that stands for all variables are in it expanded, as
// soon as Expand has told which variables there are.
//
// What Put and Delete cost depends on the target and on how many share its
// variables, not on how many there are.
type Set struct {
	mu          sync.RWMutex
	given       map[Key]*Target // as they were put in
	targets     map[Key]*Target // the same, expanded
	wild        map[Key]bool    // those that Expand changes
	byVariable  index[string]
	variables   []string // the names in byVariable, in order; nil: not known
	byTemplate  index[string]
	byConfigMap index[ConfigMapKey]
	listed      []string // what there is, by Expand; forgotten with the last of wild
	expands     bool     // Expand was called, and listed is of use
}

// Replace makes ts the content of the set and tells which keys are new or
// differ from before. Keys that ts lacks are forgotten. A later target with
// the key of an earlier one wins.
func (s *Set) Replace(ts []*Target) (changed []Key) {
	next := make(map[Key]*Target, len(ts))
	for _, t := range ts {
		next[t.Key] = t
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.given {
		if next[key] == nil {
			s.remove(key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(next)) {
		if s.put(next[key], nil, nil) {
			changed = append(changed, key)
		}
	}
	return changed
}

// Put adds a target, or replaces the one with its key, and tells whether it is
// new or differs from before.
func (s *Set) Put(t *Target) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(t, nil, nil)
}

// Delete forgets a target; false when it was not in the set.
func (s *Set) Delete(key Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(key)
}

// Get finds the target of a key; false when it is not, or no longer, in the
// set.
func (s *Set) Get(key Key) (*Target, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, ok := s.targets[key]
	return t, ok
}

// Keys lists all keys.
func (s *Set) Keys() []Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.targets))
}

// All lists all targets.
func (s *Set) All() []*Target {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*Target, 0, len(s.targets))
	for _, key := range slices.Sorted(maps.Keys(s.targets)) {
		all = append(all, s.targets[key])
	}
	return all
}

// put takes a target over, with the recalled variables and less the released
// ones. The lock is held.
func (s *Set) put(t *Target, recalled, released []string) (changed bool) {
	if s.given == nil {
		s.given, s.targets, s.wild = map[Key]*Target{}, map[Key]*Target{}, map[Key]bool{}
	}
	before, made := s.targets[t.Key], s.expanded(t, recalled, released)
	s.given[t.Key] = t
	if delete(s.wild, t.Key); t.Wildcard() {
		s.wild[t.Key] = true
	}
	s.tame()
	if reflect.DeepEqual(before, made) {
		return false
	}
	if before != nil {
		s.unlink(before)
	}
	s.link(made)
	s.targets[t.Key] = made
	return true
}

// remove forgets a target. The lock is held.
func (s *Set) remove(key Key) bool {
	t, ok := s.targets[key]
	if !ok {
		return false
	}
	s.unlink(t)
	delete(s.given, key)
	delete(s.targets, key)
	delete(s.wild, key)
	s.tame()
	return true
}
