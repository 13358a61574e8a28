package targets

import (
	"cmp"
	"maps"
	"slices"
)

// Variables lists the ids of all variables in use, each once.
func (s *Set) Variables() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.variables == nil {
		s.variables = slices.Sorted(maps.Keys(s.byVariable))
	}
	return slices.Clone(s.variables)
}

// ByVariable lists the targets that mention any of the variables, each once.
func (s *Set) ByVariable(ids ...string) []Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byVariable.union(ids)
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
	return s.byTemplate.union(files)
}

// ConfigMaps lists the places of templates in ConfigMaps that are in use, each
// once, by namespace, name and key.
func (s *Set) ConfigMaps() []ConfigMapKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var places []ConfigMapKey
	for place := range s.byConfigMap {
		if place.Key != "" {
			places = append(places, place)
		}
	}
	slices.SortFunc(places, func(a, b ConfigMapKey) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
	return places
}

// ByConfigMap lists the targets whose templates are in any of the places, each
// once. A place without Key stands for all keys of the ConfigMap.
func (s *Set) ByConfigMap(places ...ConfigMapKey) []Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byConfigMap.union(places)
}

// index finds targets by what they depend on; the keys are in order.
type index[K comparable] map[K][]Key

func (x index[K]) union(names []K) []Key {
	var keys []Key
	for _, name := range names {
		keys = append(keys, x[name]...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// add tells whether the name is new.
func (x *index[K]) add(name K, key Key) (first bool) {
	if *x == nil {
		*x = index[K]{}
	}
	keys := (*x)[name]
	if at, found := slices.BinarySearch(keys, key); !found {
		(*x)[name] = slices.Insert(keys, at, key)
	}
	return len(keys) == 0
}

// remove tells whether nothing has the name any more.
func (x index[K]) remove(name K, key Key) (last bool) {
	keys := x[name]
	at, found := slices.BinarySearch(keys, key)
	switch {
	case !found:
	case len(keys) == 1:
		delete(x, name)
		return true
	default:
		x[name] = slices.Delete(keys, at, at+1)
	}
	return false
}

// link puts a target into the look-ups. The lock is held.
func (s *Set) link(t *Target) {
	for _, id := range t.Variables() {
		if s.byVariable.add(id, t.Key) {
			s.variables = nil
		}
	}
	for _, part := range t.Parts() {
		if name := part.Template.File; name != "" {
			s.byTemplate.add(name, t.Key)
		}
		if place := part.Template.ConfigMap; place != (ConfigMapKey{}) {
			s.byConfigMap.add(place, t.Key)
			s.byConfigMap.add(ConfigMapKey{Namespace: place.Namespace, Name: place.Name}, t.Key)
		}
	}
}

// unlink is the contrary of link.
func (s *Set) unlink(t *Target) {
	for _, id := range t.Variables() {
		if s.byVariable.remove(id, t.Key) {
			s.variables = nil
		}
	}
	for _, part := range t.Parts() {
		if name := part.Template.File; name != "" {
			s.byTemplate.remove(name, t.Key)
		}
		if place := part.Template.ConfigMap; place != (ConfigMapKey{}) {
			s.byConfigMap.remove(place, t.Key)
			s.byConfigMap.remove(ConfigMapKey{Namespace: place.Namespace, Name: place.Name}, t.Key)
		}
	}
}
