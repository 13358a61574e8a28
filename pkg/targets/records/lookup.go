package records

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/targets"
)

// Variables lists the ids of all variables in use, each once.
func (l *Lane) Variables() []string {
	s := l.all()
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.variables == nil {
		l.variables = slices.Sorted(maps.Keys(l.byVariable))
	}
	return slices.Clone(l.variables)
}

// ByVariable lists the targets that mention any of the variables, each once.
func (l *Lane) ByVariable(ids ...string) []targets.Key {
	s := l.all()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return l.byVariable.union(ids)
}

// ByVariable lists the targets of all lanes that mention a variable, with their known
// state, by key.
func (s *Set) ByVariable(id string) (all []Record) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, l := range s.lanes {
		for _, key := range l.byVariable[id] {
			all = append(all, s.copy(s.records[key]))
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return cmp.Compare(a.Spec.Key, b.Spec.Key) })
	return all
}

// TemplateFiles lists the template files in use, each once.
func (l *Lane) TemplateFiles() []string {
	s := l.all()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(l.byTemplate))
}

// ByTemplate lists the targets that use any of the template files, each once.
func (l *Lane) ByTemplate(files ...string) []targets.Key {
	s := l.all()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return l.byTemplate.union(files)
}

// ConfigMaps lists the locations of templates in ConfigMaps that are in use, each once,
// by namespace, name and key.
func (l *Lane) ConfigMaps() []targets.ConfigMapKey {
	s := l.all()
	s.mu.RLock()
	defer s.mu.RUnlock()
	var places []targets.ConfigMapKey
	for place := range l.byConfigMap {
		if place.Key != "" {
			places = append(places, place)
		}
	}
	slices.SortFunc(places, func(a, b targets.ConfigMapKey) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
	return places
}

// ByConfigMap lists the targets with templates at any of the locations, each once. A
// location without Key stands for all keys of the ConfigMap.
func (l *Lane) ByConfigMap(places ...targets.ConfigMapKey) []targets.Key {
	s := l.all()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return l.byConfigMap.union(places)
}

// index finds targets by their dependencies; the keys are in order.
type index[K comparable] map[K][]targets.Key

func (x index[K]) union(names []K) []targets.Key {
	var keys []targets.Key
	for _, name := range names {
		keys = append(keys, x[name]...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// set adds a key under a name, or removes it. It reports whether the name is new or
// removed.
func (x index[K]) set(name K, key targets.Key, there bool) (changed bool) {
	keys := x[name]
	at, found := slices.BinarySearch(keys, key)
	switch {
	case found == there:
		return false
	case there:
		keys = slices.Insert(keys, at, key)
	default:
		keys = slices.Delete(keys, at, at+1)
	}
	if x[name] = keys; len(keys) == 0 {
		delete(x, name)
	}
	return len(keys) == 0 || there && len(keys) == 1
}

// link adds a target to the indexes, or removes it. The caller holds the lock.
func (l *Lane) link(t *targets.Target, there bool) {
	if l.byVariable == nil {
		l.byVariable, l.byTemplate, l.byConfigMap = index[string]{}, index[string]{}, index[targets.ConfigMapKey]{}
	}
	for _, id := range slices.Concat(t.Variables(), t.Watched) {
		if l.byVariable.set(id, t.Key, there) {
			l.variables = nil
		}
	}
	for _, part := range t.Parts() {
		if name := part.Template.File; name != "" {
			l.byTemplate.set(name, t.Key, there)
		}
		if place := part.Template.ConfigMap; place != (targets.ConfigMapKey{}) {
			l.byConfigMap.set(place, t.Key, there)
			l.byConfigMap.set(targets.ConfigMapKey{Namespace: place.Namespace, Name: place.Name}, t.Key, there)
		}
	}
}

// Taken reports whether a path below the secrets folder is the path of a target, or is
// above or below one.
func (l *Lane) Taken(path string) bool {
	s := l.all()
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, r := range s.records {
		if own := r.spec.File.Path; r.spec.Secret == nil && (strings.HasPrefix(path+"/", own+"/") || strings.HasPrefix(own+"/", path+"/")) {
			return true
		}
	}
	return false
}
