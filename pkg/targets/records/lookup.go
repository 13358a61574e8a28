package records

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/secretsync/syncer/pkg/targets"
)

// Variables lists the ids of all variables in use, each once. The caller does not modify
// the list.
func (l *Lane) Variables() []string {
	s := l.wholeSet()
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.variables == nil {
		l.variables = slices.Sorted(maps.Keys(l.byVariable))
	}
	return l.variables
}

// ByVariable lists the targets that mention any of the variables, each once.
func (l *Lane) ByVariable(ids ...string) []targets.Key {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return l.byVariable.union(ids...)
}

// ByVariable lists the targets of all lanes that mention a variable, with their known
// state, by key.
func (s *Set) ByVariable(id string) (all []Record) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, l := range s.lanes {
		for key := range l.byVariable[id].all() {
			all = append(all, s.copy(s.records[key]))
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return cmp.Compare(a.Spec.Key, b.Spec.Key) })
	return all
}

// partlyRead is the name, in the index of the shown sets, of the Secrets whose definition
// could be read only in part. No variable has it.
const partlyRead = ""

// show updates the index of the shown sets after a change of a record. before are the sets
// that it showed. The caller holds the lock.
func (s *Set) show(r *record, before map[string]targets.DeliveredSet) {
	if s.shown == nil {
		s.shown = index[string]{}
	}
	for id := range before {
		if _, still := r.status.Sets[id]; !still {
			s.shown.set(id, r.spec.Key, false)
		}
	}
	for id := range r.status.Sets {
		s.shown.set(id, r.spec.Key, true)
	}
	k := r.spec.Secret
	s.shown.set(partlyRead, r.spec.Key, k != nil && (len(r.spec.Faults) > 0 || k.HoldAll || len(k.Hold) > 0))
}

// Showing lists the Secrets that may show a set, with their known state, by key. An entry
// names the set, or their content shows it. A Secret with a faulty definition is listed
// until its content was read.
func (s *Set) Showing(set string) (all []Record) {
	shows := func(e targets.Entry) bool { return e.IsSet() && e.Variable == set }
	s.mu.RLock()
	defer s.mu.RUnlock()
	keys := s.shown.union(set, partlyRead)
	for _, l := range s.lanes {
		keys = slices.AppendSeq(keys, l.byVariable[set].all())
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		r := s.records[key]
		_, is := r.status.Sets[set]
		if r.spec.Secret != nil && (is || r.status.Version == "" && s.shown[partlyRead].has(key) ||
			slices.ContainsFunc(r.spec.Parts(), func(part *targets.Target) bool { return slices.ContainsFunc(part.Entries, shows) })) {
			all = append(all, s.copy(r))
		}
	}
	return all
}

// TemplateFiles lists the template files in use, each once.
func (l *Lane) TemplateFiles() []string {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(l.byTemplate))
}

// ByTemplate lists the targets that use any of the template files, each once.
func (l *Lane) ByTemplate(files ...string) []targets.Key {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return l.byTemplate.union(files...)
}

// ConfigMaps lists the locations of templates in ConfigMaps that are in use, each once,
// by namespace, name and key.
func (l *Lane) ConfigMaps() []targets.ConfigMapKey {
	s := l.wholeSet()
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.places == nil {
		for place := range l.byConfigMap {
			if place.Key != "" {
				l.places = append(l.places, place)
			}
		}
		slices.SortFunc(l.places, func(a, b targets.ConfigMapKey) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
		})
	}
	return slices.Clone(l.places)
}

// ByConfigMap lists the targets with templates at any of the locations, each once. A
// location without Key stands for all keys of the ConfigMap.
func (l *Lane) ByConfigMap(places ...targets.ConfigMapKey) []targets.Key {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return l.byConfigMap.union(places...)
}

// index finds targets by their dependencies.
type index[K comparable] map[K]keys

// keys are the targets under one name. Most names have one target, which needs no map.
type keys struct {
	one  targets.Key          // the only key; empty: see more
	more map[targets.Key]bool // at least two keys, or nil
}

func (k keys) has(key targets.Key) bool { return k.more[key] || key != "" && key == k.one }

// all returns the keys in any order.
func (k keys) all() iter.Seq[targets.Key] {
	if k.one == "" {
		return maps.Keys(k.more)
	}
	return slices.Values([]targets.Key{k.one})
}

// union lists the keys under the names, each once, in order.
func (x index[K]) union(names ...K) []targets.Key {
	var keys []targets.Key
	for _, name := range names {
		keys = slices.AppendSeq(keys, x[name].all())
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// set adds a key, which is not empty, under a name, or removes it. It reports whether the
// name is new or removed.
func (x index[K]) set(name K, key targets.Key, there bool) (changed bool) {
	k, known := x[name]
	switch {
	case k.has(key) == there:
		return false
	case !known:
		x[name] = keys{one: key}
		return true
	case !there && k.one == key:
		delete(x, name)
		return true
	case !there && len(k.more) == 2:
		delete(k.more, key)
		for left := range k.more {
			x[name] = keys{one: left}
		}
	case !there:
		delete(k.more, key)
	case k.more == nil:
		x[name] = keys{more: map[targets.Key]bool{k.one: true, key: true}}
	default:
		k.more[key] = true
	}
	return false
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
			if l.byConfigMap.set(place, t.Key, there) {
				l.places = nil
			}
			l.byConfigMap.set(targets.ConfigMapKey{Namespace: place.Namespace, Name: place.Name}, t.Key, there)
		}
	}
}

// Taken reports whether a path below the secrets folder is the path of a target.
func (l *Lane) Taken(path string) bool {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, r := range s.records {
		if r.spec.Secret == nil && r.spec.File.Path == path {
			return true
		}
	}
	return false
}
