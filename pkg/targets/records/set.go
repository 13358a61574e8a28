package records

import (
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/secretsync/syncer/internal/fingerprint"
	"github.com/secretsync/syncer/pkg/targets"
)

// Set contains the targets that are kept in sync now, each a Record, in lanes. It lives
// as long as its knowledge is useful. The zero Set is empty and ready. It is safe for
// concurrent use.
type Set struct {
	// Budget limits the total memory in bytes of the Secrets of one namespace, by
	// targets.Target.Memory; 0 means no limit. A Secret that would exceed it is kept as
	// [targets.Target.Refused], or not at all; see Waiting.
	Budget int

	prints fingerprint.Maker

	mu      sync.RWMutex // never held over I/O
	records map[targets.Key]*record
	lanes   map[string]*Lane
	busy    map[targets.Key]*work // by key that a worker holds
	seen    map[targets.Key]any   // see RecordBeforeFirstSync
	shown   index[string]         // the Secrets by the set that they show; see Showing
	made    uint64                // the number of records made so far
	left    leftRevisions
	spaces  map[string]*space // the reserved memory by namespace; see Budget
}

// record is one target in the Set.
type record struct {
	lane   *Lane
	given  *targets.Target // as it was added
	spec   *targets.Target // given, as Lane.expanded returns it; the wanted state
	status Status
	made   uint64 // its number, which distinguishes it from earlier records of its key
	memory int    // reserved from the namespace's budget
	asks   int    // how often Ask was called for it
	// hindered says why users of a Secret did not get it: workloads that were not
	// restarted, and service accounts, each as in its definition. Contest is one more user.
	hindered map[string]string
	// fallen are the node-specific variables that had no value for this identity at their
	// last read, although they are listed.
	fallen map[string]bool
}

// work is a key that a worker holds.
type work struct {
	made     uint64 // record.made of the record that the worker copied
	observed string // the version of the destination that Observe was called with meanwhile
}

// Change is a key whose target must be synced because it is new or different. If it is
// Gone, the target is no longer in the lane.
type Change struct {
	Key  targets.Key
	Lane string
	Gone bool
}

// Lane is the part of a Set that one identity reads. Look-ups return keys in order. The
// zero Lane is the only lane of a separate Set.
//
// The lane expands targets with an entry that stands for all variables, as soon as Expand
// is called with the list of variables.
//
// The cost of Put and Delete depends on the target and on how many share its variables.
// It does not depend on the number of variables or targets.
type Lane struct {
	name string
	once sync.Once
	set  *Set

	keys        map[targets.Key]bool
	wild        map[targets.Key]bool // those that Expand changes
	byVariable  index[string]
	variables   []string // the names in byVariable, in order; nil: unknown
	byTemplate  index[string]
	byConfigMap index[targets.ConfigMapKey]
	places      []targets.ConfigMapKey // the templates in byConfigMap, in order; nil: unknown
	listed      []string               // the variables from Expand; forgotten with the last of wild
	unset       map[string]bool        // those of listed that have no value
	expands     bool                   // Expand was called, and listed is in use

	start  time.Time // when it was made, renewed, or last received a target while empty
	polled time.Time // the last poll of every variable since then; zero: none
}

// Lane returns the lane with a name, and creates it if necessary.
func (s *Set) Lane(name string) *Lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[name]
	if l == nil {
		l = &Lane{name: name, set: s, start: time.Now()}
		if s.lanes == nil {
			s.lanes = map[string]*Lane{}
		}
		s.lanes[name] = l
	}
	return l
}

// wholeSet returns the Set of the lane.
func (l *Lane) wholeSet() *Set {
	l.once.Do(func() {
		if l.set == nil {
			l.set, l.start = &Set{}, time.Now()
		}
	})
	return l.set
}

// Replace replaces the content of the lane by ts. It deletes other keys. If two targets
// have the same key, the later one wins.
func (l *Lane) Replace(ts []*targets.Target) (changes []Change) {
	next := make(map[targets.Key]*targets.Target, len(ts))
	for _, t := range ts {
		next[t.Key] = t
	}
	s := l.wholeSet()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		if next[key] == nil {
			changes = append(changes, s.remove(key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(next)) {
		changes = append(changes, l.add(next[key])...)
	}
	return changes
}

// Put adds a target, or replaces the one with its key in any lane. The knowledge about
// the target stays.
func (l *Lane) Put(t *targets.Target) []Change {
	s := l.wholeSet()
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.add(t)
}

// Delete removes a target and all knowledge about it.
func (s *Set) Delete(key targets.Key) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetBeforeFirstSync(key)
	if s.records[key] == nil {
		s.release(key, 0)
		return nil
	}
	return []Change{s.remove(key)}
}

// Delete calls Set.Delete.
func (l *Lane) Delete(key targets.Key) []Change { return l.wholeSet().Delete(key) }

// Get finds the target of a key. It returns false if the target is not, or no longer, in
// the lane.
func (l *Lane) Get(key targets.Key) (*targets.Target, bool) {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !l.keys[key] {
		return nil, false
	}
	return s.records[key].spec, true
}

// Get finds the target of a key in any lane.
func (s *Set) Get(key targets.Key) (*targets.Target, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.records[key]
	if r == nil {
		return nil, false
	}
	return r.spec, true
}

// Keys lists all keys.
func (l *Lane) Keys() []targets.Key {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(l.keys))
}

// Records lists all targets with their known state.
func (l *Lane) Records() []Record {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]Record, 0, len(l.keys))
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		all = append(all, s.copy(s.records[key]))
	}
	return all
}

// Each yields all targets by key, each with its state at that moment. A poll looks at each
// of them, and a copy of all would be half of its garbage.
func (l *Lane) Each() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, key := range l.Keys() {
			if r, ok := l.record(key); ok && !yield(r) {
				return
			}
		}
	}
}

func (l *Lane) record(key targets.Key) (Record, bool) {
	s := l.wholeSet()
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !l.keys[key] {
		return Record{}, false
	}
	return s.copy(s.records[key]), true
}

// Records lists the targets of all lanes with their known state.
func (s *Set) Records() []Record {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]Record, 0, len(s.records))
	for _, key := range slices.Sorted(maps.Keys(s.records)) {
		all = append(all, s.copy(s.records[key]))
	}
	return all
}

func (s *Set) copy(r *record) Record {
	return Record{Spec: r.spec, Status: r.status, set: s, made: r.made, asks: r.asks}
}

// add adds a target, possibly from another lane. The caller holds the lock.
func (l *Lane) add(t *targets.Target) (changes []Change) {
	s := l.set
	r := s.records[t.Key]
	if r != nil && r.lane != l {
		changes = append(changes, Change{Key: t.Key, Lane: r.lane.name, Gone: true})
		r.lane.drop(t.Key, r.spec)
		r.lane, r.spec = l, nil
	}
	if r == nil && !s.admit(t) {
		return nil
	}
	if r == nil {
		if s.records == nil {
			s.records = map[targets.Key]*record{}
		}
		s.made++
		r = &record{lane: l, made: s.made, status: Status{Sight: Sight{Revision: s.left.takeRevision(t.Key)}}}
		s.records[t.Key] = r
	}
	if l.put(r, t, nil, nil) {
		changes = append(changes, Change{Key: t.Key, Lane: l.name})
	}
	return changes
}

// put gives a record its spec, with the recalled variables and without the released ones.
// The caller holds the lock.
func (l *Lane) put(r *record, t *targets.Target, recalled, released []string) (changed bool) {
	if l.keys == nil {
		l.keys, l.wild = map[targets.Key]bool{}, map[targets.Key]bool{}
	}
	if len(l.keys) == 0 { // a poll of an empty lane proves nothing about a new target
		l.start, l.polled = time.Now(), time.Time{}
	}
	before, made := r.spec, l.expanded(r, t, recalled, released)
	if made.Secret != nil {
		if fits := l.set.reserve(r, made); !fits {
			t, made = made.Refused(l.set.exceeded()), made.Refused(l.set.exceeded())
		}
	}
	r.given = t
	l.keys[t.Key] = true
	if delete(l.wild, t.Key); t.NeedsList() {
		l.wild[t.Key] = true
	}
	l.dropUnusedList()
	if reflect.DeepEqual(before, made) {
		return false
	}
	if before != nil {
		l.link(before, false)
	}
	l.link(made, true)
	r.spec = made
	l.set.show(r, nil)
	return true
}

// remove removes a target. The caller holds the lock.
func (s *Set) remove(key targets.Key) Change {
	r := s.records[key]
	r.lane.drop(key, r.spec)
	for id := range r.status.Sets {
		s.shown.set(id, key, false)
	}
	s.shown.set(partlyRead, key, false)
	delete(s.records, key)
	s.release(key, r.memory)
	s.left.keep(key, r.status.Revision)
	return Change{Key: key, Lane: r.lane.name, Gone: true}
}

// drop removes a target from the indexes. The caller holds the lock.
func (l *Lane) drop(key targets.Key, spec *targets.Target) {
	l.link(spec, false)
	delete(l.keys, key)
	delete(l.wild, key)
	l.dropUnusedList()
}

// mostLeft limits how many deleted Secrets are remembered.
const mostLeft = 1000

// leftRevisions remembers the revisions of deleted Secrets. A Secret that is created again
// continues from its old revision. With the same content the revision stays, and no
// workload is restarted. With other content it rises, and the workloads that run with the
// old content are restarted.
type leftRevisions struct {
	byKey map[targets.Key]Revision
	order []targets.Key // in the order of deletion
}

func (l *leftRevisions) keep(key targets.Key, r Revision) {
	if r.Stamp == (Stamp{}) {
		return
	}
	if l.byKey == nil {
		l.byKey = map[targets.Key]Revision{}
	}
	if _, there := l.byKey[key]; !there {
		l.order = append(l.order, key)
	}
	l.byKey[key] = r
	if len(l.order) > mostLeft {
		delete(l.byKey, l.order[0])
		l.order = l.order[1:]
	}
}

// takeRevision returns the revision of a Secret that exists again, and forgets it.
func (l *leftRevisions) takeRevision(key targets.Key) Revision {
	r, there := l.byKey[key]
	if there {
		delete(l.byKey, key)
		l.order = slices.DeleteFunc(l.order, func(other targets.Key) bool { return other == key })
	}
	return r
}
