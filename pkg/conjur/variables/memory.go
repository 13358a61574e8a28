package variables

import (
	"hash"
	"slices"
	"sync"
	"time"

	"github.com/secretsync/syncer/internal/fingerprint"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/secret"
)

const (
	// soloTime is how long a variable is requested individually, if it causes a
	// batch to be refused but succeeds individually.
	soloTime = 10 * time.Minute
	// recallTime is how long memory may answer with a proof of "gone". It does so
	// if there are more such variables than the budget permits to request.
	recallTime = 5 * time.Minute
	// startPolls is the number of polls after the first find in which a new
	// variable may be one that an earlier process delivered. By then all contents
	// have been read.
	startPolls = 10
)

// variable is the memory of one variable. It does not contain the value.
type variable struct {
	// print is the fingerprint of the value in the last poll. Before the first poll
	// it is the first delivered value, which is the oldest that anyone may still
	// hold.
	print    fingerprint.Fingerprint
	hasPrint bool
	// changed makes the next poll report the variable, whatever the poll finds.
	changed bool
	// aside keeps the variable out of batches, because the server called it gone.
	// It is requested individually, in rotation.
	aside     bool
	namedIn   uint64    // the call in which a refused batch named it
	soloUntil time.Time // excluded from batches although it answers
	suspicion *suspicion
	stability stability
	foundIn   uint64    // the last call that found it; 0 if none
	foundAt   uint64    // the step at which it was found last; 0 if never
	newcomer  bool      // came into use after the start
	unlisted  bool      // see trust
	readers   string    // see conjur.Page; "" if unknown
	heldAt    time.Time // since when the active hold prevents the verdict Gone
	kept      Use       // tenants for which it is held; set with heldAt
	cleared   time.Time // when its hold passed; zero if found since
	// freed are the tenants for which it is gone although it is held for others.
	freed   map[string]bool
	heldFor time.Duration
	asked   uint64 // step of the last individual request
	used    uint64 // last poll that included it or followed its fetch
}

// memory is the state of variables that the calls of Fetch and Changed share.
type memory struct {
	users  func() map[string]Use // see Config; nil if nobody tells tenants apart
	prints fingerprint.Maker

	mu    sync.Mutex
	rules Rules
	vars  map[string]*variable
	inUse inUse
	all   bool // see holdsAll
	// unreadable maps readers to when Conjur last refused a variable with them; zero if
	// it ever gave one.
	unreadable map[string]time.Time
	steps      uint64 // orders calls and observations
	polls      uint64
	started    uint64           // the poll that ends the start; 0 before the first find
	hold       *hold            // nil if none is active
	events     []HoldEvent      // not reported yet
	proofs     []*GoneError     // complete and not reported yet
	returns    []*ReturnedError // not reported yet
}

// inUse lists the variables of the last poll. Usually they are those of the poll before,
// and need no lookups.
type inUse struct {
	ids       []string    // not modified
	vars      []*variable // never forgotten before another poll
	hasCommas bool        // in an id, see conjur.Batchable
}

func newMemory(r Rules) *memory {
	return &memory{rules: r, vars: map[string]*variable{}, unreadable: map[string]time.Time{}}
}

// usersWhenDue returns who uses the variables if that is needed, which due says with the
// lock held. Without it, who answers is asked.
func (m *memory) usersWhenDue(due func() bool) map[string]Use {
	m.mu.Lock()
	ask := m.users != nil && due()
	m.mu.Unlock()
	if !ask {
		return nil
	}
	return m.users()
}

func (m *memory) fingerprint(v secret.Value) fingerprint.Fingerprint {
	return m.prints.Make(func(h hash.Hash) { h.Write(v.Bytes()) })
}

// setRules ends the active hold if the new rules disable the brake.
func (m *memory) setRules(r Rules) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules = r
	if r.Brake.Disabled && m.hold != nil {
		m.endHold(Passed, time.Now())
	}
}

// step returns a number greater than all earlier ones.
func (m *memory) step() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps++
	return m.steps
}

// poll begins a poll of ids. It forgets variables that were in neither this poll
// nor the last, and were not fetched since. It reports whether an earlier value of
// one of the ids is held back.
func (m *memory) poll(ids []string) (unsteady bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.polls++
	m.review(time.Now())
	if !slices.Equal(ids, m.inUse.ids) {
		m.inUse = inUse{ids: ids, vars: make([]*variable, len(ids)), hasCommas: slices.ContainsFunc(ids, func(id string) bool { return !conjur.Batchable(id) })}
		for i, id := range ids {
			m.inUse.vars[i] = m.get(id)
		}
	}
	for _, v := range m.inUse.vars {
		v.used = m.polls
		unsteady = unsteady || v.stability.back != nil
	}
	if len(m.vars) == len(ids) {
		return unsteady
	}
	for id, v := range m.vars {
		if v.used+1 < m.polls {
			delete(m.vars, id)
		}
	}
	return unsteady
}

// idsInUse lists the variables of the last poll.
func (m *memory) idsInUse() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inUse.ids
}

// get is called with the lock held.
func (m *memory) get(id string) *variable {
	v := m.vars[id]
	if v == nil {
		v = &variable{used: m.polls, newcomer: m.started > 0 && m.polls > m.started}
		m.vars[id] = v
	}
	return v
}

// fetched records a value before its delivery. It returns an error if the value is
// held back. If the value differs from the last poll's, others may hold a different
// value. The next poll then reports a change, even if it finds its own last value
// again.
func (m *memory) fetched(id string, p fingerprint.Fingerprint, call uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.get(id)
	v.used = m.polls
	m.found(v, call)
	if err := m.believe(id, v, p, time.Now()); err != nil {
		return err
	}
	switch {
	case !v.hasPrint:
		v.print, v.hasPrint = p, true
	case v.print != p:
		v.changed = true
	}
	return nil
}

// polled records a value from a poll and reports whether it changed.
func (m *memory) polled(id string, value secret.Value, call uint64) (changed bool) {
	p := m.fingerprint(value)
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.get(id)
	v.stability.polled = p
	return m.seen(id, v, call, time.Now())
}

// unmodified records that a poll found the same values as before, and returns the
// variables that changed. It keeps the records of the chunk's variables for next time.
func (m *memory) unmodified(ch *chunk, call uint64) (changed []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ch.vars == nil {
		ch.vars = make([]*variable, len(ch.IDs))
	}
	now := time.Now()
	for i, id := range ch.IDs {
		v := ch.vars[i]
		if v == nil || v.used != m.polls { // perhaps forgotten
			v = m.get(id)
			ch.vars[i] = v
		}
		if m.seen(id, v, call, now) {
			changed = append(changed, id)
		}
	}
	return changed
}

// seen records that a poll found the recorded value. The caller holds the lock.
func (m *memory) seen(id string, v *variable, call uint64, now time.Time) (changed bool) {
	m.found(v, call)
	if p := v.stability.polled; p != (fingerprint.Fingerprint{}) {
		if m.believe(id, v, p, now) != nil {
			return false
		}
		changed = v.hasPrint && v.print != p
		v.print, v.hasPrint = p, true
	}
	changed = changed || v.changed
	v.changed = false
	return changed
}

// found is called with the lock held.
func (m *memory) found(v *variable, call uint64) {
	if m.started == 0 {
		m.started = m.polls + startPolls
	}
	if s := v.suspicion; s != nil && (s.confirmed || s.told || !v.hasPrint || v.freed != nil) {
		v.changed = true // a consumer that continued without it may hold it
	}
	v.suspicion, v.aside, v.unlisted, v.foundIn = nil, false, false, call
	if v.readers != "" {
		m.unreadable[v.readers] = time.Time{}
	}
	m.steps++
	v.foundAt = m.steps
	v.heldAt, v.cleared, v.heldFor = time.Time{}, time.Time{}, 0
	v.kept, v.freed = nil, nil
	if v.namedIn == call {
		v.soloUntil = time.Now().Add(soloTime)
	}
}

// setAside removes a variable from batches, because a refusal in this call named
// it.
func (m *memory) setAside(id string, call uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.get(id)
	v.aside, v.namedIn = true, call
}

// isolated records that this variable caused a batch to be refused, although an
// individual request found it.
func (m *memory) isolated(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.get(id).soloUntil = time.Now().Add(soloTime)
}

// pending splits variables that are set aside: those without a conclusion, and
// those that are gone.
func (m *memory) pending(aside []string) (open, gone []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range aside {
		if v := m.vars[id]; v != nil && v.suspicion != nil && v.suspicion.confirmed {
			gone = append(gone, id)
		} else {
			open = append(open, id)
		}
	}
	return open, gone
}

func (m *memory) isAside(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.vars[id]
	return v != nil && v.aside
}

// askedSingly records an individual request, so that another variable follows in
// the rotation.
func (m *memory) askedSingly(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps++
	m.get(id).asked = m.steps
}

// changedAside returns the variables that are set aside and that no poll has
// reported since they were proven gone. It returns each of them once.
func (m *memory) changedAside() (changed []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, v := range m.inUse.vars {
		if v.aside && v.changed {
			v.changed = false
			changed = append(changed, m.inUse.ids[i])
		}
	}
	return changed
}
