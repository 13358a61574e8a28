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
type Set struct {
	mu         sync.RWMutex
	given      map[Key]*Target  // as they were put in
	targets    map[Key]*Target  // the same, expanded
	byVariable map[string][]Key // variable id → targets that mention it
	byTemplate map[string][]Key // template file → targets that use it
	listed     []string         // what there is, by Expand
	expands    bool             // Expand was called
}

// Replace makes ts the content of the set and tells which keys are new or
// differ from before. Keys that ts lacks are forgotten. A later target with
// the key of an earlier one wins.
func (s *Set) Replace(ts []*Target) (changed []Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = make(map[Key]*Target, len(ts))
	for _, t := range ts {
		s.given[t.Key] = t
	}
	return s.update(nil)
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

// Variables lists the ids of all variables in use, each once.
func (s *Set) Variables() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.byVariable))
}

// ByVariable lists the targets that mention any of the variables, each once.
func (s *Set) ByVariable(ids ...string) []Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return union(s.byVariable, ids)
}

// TemplateFiles lists the template files in use, each once.
func (s *Set) TemplateFiles() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.byTemplate))
}

// ByTemplate lists the targets that use any of the template files, each once.
func (s *Set) ByTemplate(files ...string) []Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return union(s.byTemplate, files)
}

func union(index map[string][]Key, names []string) []Key {
	var keys []Key
	for _, name := range names {
		keys = append(keys, index[name]...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// update makes targets and the look-ups from what was given, and tells which
// keys are new or differ from before. It is called with the lock held.
func (s *Set) update(released map[Key][]string) (changed []Key) {
	next := make(map[Key]*Target, len(s.given))
	byVariable, byTemplate := map[string][]Key{}, map[string][]Key{}
	for _, key := range slices.Sorted(maps.Keys(s.given)) {
		t := s.expanded(s.given[key], released[key])
		for _, id := range t.Variables() {
			byVariable[id] = append(byVariable[id], key)
		}
		if name := t.Template.File; name != "" {
			byTemplate[name] = append(byTemplate[name], key)
		}
		if !reflect.DeepEqual(s.targets[key], t) {
			changed = append(changed, key)
		}
		next[key] = t
	}
	s.targets, s.byVariable, s.byTemplate = next, byVariable, byTemplate
	return changed
}
