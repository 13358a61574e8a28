package variables

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

const (
	// soloTime is for how long a variable is asked for by itself that answers
	// well when asked so, but makes a batch be refused.
	soloTime = 10 * time.Minute
	// recallTime is for how long a proof of "gone" may be answered again from
	// memory, when there are more such variables than the budget allows to
	// ask for anew.
	recallTime = 5 * time.Minute
	// startPolls is how many polls after the first find a variable that is new here
	// may be one that an earlier process has delivered: contents are read by then.
	startPolls = 10
)

type fingerprint [sha256.Size]byte

// variable is what is remembered of one variable. Values are not.
type variable struct {
	// print is of the value that the last poll saw or, before the first poll,
	// that was delivered first: the oldest that anyone may still hold.
	print    fingerprint
	hasPrint bool
	// changed makes the next poll report the variable, whatever it sees itself.
	changed bool
	// aside keeps it out of batches: the server called it gone. It is asked
	// for by itself, when its turn comes.
	aside     bool
	namedIn   uint64    // the call in which a batch's refusal named it
	soloUntil time.Time // keeps it out of batches too, though it answers
	suspicion *suspicion
	course    course
	foundIn   uint64    // the last call in which it was found; 0: never
	newcomer  bool      // came into use after the start
	unlisted  bool      // see trust
	heldAt    time.Time // since when the hold that is on has kept it from being called gone
	cleared   time.Time // when a hold on it had passed; zero: it was not found since
	heldFor   time.Duration
	asked     uint64 // when it was last asked for by itself
	used      uint64 // the last poll that was asked about it, or that followed a fetch of it
}

// memory is what the calls of Fetch and Changed share about variables.
type memory struct {
	key [sha256.Size]byte // of the fingerprints; new in each process

	mu      sync.Mutex
	rules   Rules
	vars    map[string]*variable
	steps   uint64 // orders calls and observations
	polls   uint64
	started uint64           // the poll that ends the start; 0: nothing was found yet
	hold    *hold            // nil: none is on
	events  []HoldEvent      // not reported yet
	proofs  []*GoneError     // that were completed, and not reported yet
	returns []*ReturnedError // not reported yet
}

func newMemory(r Rules) *memory {
	m := &memory{rules: r, vars: map[string]*variable{}}
	_, _ = rand.Read(m.key[:]) // never fails, says its documentation
	return m
}

func (m *memory) fingerprint(v secret.Value) fingerprint {
	h := hmac.New(sha256.New, m.key[:])
	h.Write(v.Bytes())
	return fingerprint(h.Sum(nil))
}

// setRules ends the hold that is on if there is to be no brake.
func (m *memory) setRules(r Rules) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules = r
	if r.Brake.Disabled && m.hold != nil {
		m.endHold(Passed, time.Now())
	}
}

// budget returns how many requests a call may spend.
func (m *memory) budget() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rules.RequestBudget
}

// step returns a number higher than all before.
func (m *memory) step() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps++
	return m.steps
}

// poll begins a poll of ids and forgets the variables that neither this poll
// nor the one before was about and that have not been fetched since. It reports
// whether an earlier value of one of them is held back.
func (m *memory) poll(ids []string) (unsteady bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.polls++
	m.review(time.Now())
	for _, id := range ids {
		v := m.get(id)
		v.used = m.polls
		unsteady = unsteady || v.course.back != nil
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

// get is called with the lock held.
func (m *memory) get(id string) *variable {
	v := m.vars[id]
	if v == nil {
		v = &variable{used: m.polls, newcomer: m.started > 0 && m.polls > m.started}
		m.vars[id] = v
	}
	return v
}

// fetched records a value that is to be delivered; an error when it is not, as it
// is held back. If it is not what the last poll saw, others may hold another
// value, and the next poll says so even if the value is by then what the last
// poll saw.
func (m *memory) fetched(id string, value secret.Value, call uint64) error {
	p := m.fingerprint(value)
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.get(id)
	v.used = m.polls
	m.found(v, call)
	if err := m.believe(id, v, p); err != nil {
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

// polled records a value that a poll saw and reports whether it changed.
func (m *memory) polled(id string, value secret.Value, call uint64) (changed bool) {
	p := m.fingerprint(value)
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.get(id)
	v.course.polled = p
	return m.seen(id, v, call)
}

// unmodified records that polls see the same value as before.
func (m *memory) unmodified(id string, call uint64) (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen(id, m.get(id), call)
}

// seen records that a poll sees the value that was noted. It is called with the
// lock held.
func (m *memory) seen(id string, v *variable, call uint64) (changed bool) {
	m.found(v, call)
	if p := v.course.polled; p != (fingerprint{}) {
		if m.believe(id, v, p) != nil {
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
	if s := v.suspicion; s != nil && (s.confirmed || !v.hasPrint) {
		v.changed = true // whoever went on without it may have it
	}
	v.suspicion, v.aside, v.unlisted, v.foundIn = nil, false, false, call
	v.heldAt, v.cleared, v.heldFor = time.Time{}, time.Time{}, 0
	if v.namedIn == call {
		v.soloUntil = time.Now().Add(soloTime)
	}
}

// setAside takes a variable out of the batches because one was refused, in
// this call, with its name.
func (m *memory) setAside(id string, call uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.get(id)
	v.aside, v.namedIn = true, call
}

// isolated records that a batch was refused because of this variable, though
// it was found when it was asked for by itself.
func (m *memory) isolated(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.get(id).soloUntil = time.Now().Add(soloTime)
}

// pending splits variables that are set aside: those of which it is still open
// whether they are gone, and those that are.
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

// askedSingly records that it is another variable's turn next.
func (m *memory) askedSingly(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps++
	m.get(id).asked = m.steps
}

// changedAside returns, once, the variables that are set aside and that no poll
// has reported since they were proven gone.
func (m *memory) changedAside(ids []string) (changed []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if v := m.vars[id]; v != nil && v.aside && v.changed {
			v.changed = false
			changed = append(changed, id)
		}
	}
	return changed
}
