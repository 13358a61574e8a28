package variables

import (
	"slices"
	"time"
)

// mostTimes bounds the times of observations in a proof.
const mostTimes = 10

// freshTime is how long fetches use an answer that a variable is gone. Otherwise many
// failing targets would spend the rate limit on equal answers, while others wait.
const freshTime = time.Second

// observation is one answer in which the server called a variable gone and
// confirmed our identity. Reading.isEvidence in pkg/conjur lists the answers that count.
type observation struct {
	reason   Reason
	identity string    // the server's name for us
	issued   time.Time // request time of the token that was used
	call     uint64
}

// suspicion is an incomplete proof that a variable is gone.
type suspicion struct {
	reason    Reason // at the last observation
	identity  string // equal in all observations
	n         int    // observations that counted
	times     []time.Time
	began     uint64    // step of the first observation
	step      uint64    // step of the last observation that counted
	seen      time.Time // time of the last observation
	confirmed bool
	told      bool // a fetch answered with it
}

func (s *suspicion) first() time.Time { return s.times[0] }

// suspect records one observation that a variable is gone. It returns the state of
// the proof: a *SuspectError, a *HeldError or a *GoneError.
func (m *memory) suspect(id string, o observation) Answer {
	now, uses := time.Now(), m.usersWhenDue(func() bool { return m.vars[id] != nil && m.vars[id].suspicion != nil || m.rules.Confirmations == 1 })
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.get(id)
	if o.call <= v.foundAt { // another call found it since this one began, perhaps after its answer
		return unknown(&SuspectError{
			Variable: id, Reason: o.reason, FirstSeen: now, Needed: m.rules.Confirmations, NotBefore: now.Add(m.rules.Grace),
		})
	}
	v.aside = true
	s := v.suspicion
	if s == nil || s.identity != o.identity && !s.confirmed {
		s = &suspicion{identity: o.identity}
		v.suspicion = s
	}
	s.reason, s.seen = o.reason, now
	if o.reason == Forbidden {
		m.noteUnreadable(v, now)
	}
	if !s.confirmed {
		m.count(s, o, now)
		m.review(now)
		if m.proven(s, o, now) && m.mayGo(id, v, o, uses, now) {
			s.confirmed, v.changed = true, true
			if v.freed == nil {
				m.proofs = append(m.proofs, s.proof(id, v))
			}
			v.hasPrint, v.stability = false, stability{} // its next value is a change
		}
	}
	return m.standing(id, v)
}

// count counts an observation, if its call began after the last one was recorded
// and enough time has passed. The caller holds the lock.
func (m *memory) count(s *suspicion, o observation, now time.Time) {
	if s.n > 0 && (o.call <= s.step || now.Sub(s.times[len(s.times)-1]) < m.rules.ConfirmAfter) {
		return
	}
	m.steps++
	s.n, s.step = s.n+1, m.steps
	if s.n == 1 {
		s.began = m.steps
	}
	if len(s.times) == mostTimes {
		s.times = s.times[:mostTimes-1]
	}
	s.times = append(s.times, now)
}

// proven reports whether an observation completes the proof. There must be enough
// observations, and the grace period must be over. If more than one is needed, the
// token of the last must have been issued after the first. A deleted identity sees
// every variable as gone while its old token lasts, but gets no new token.
func (m *memory) proven(s *suspicion, o observation, now time.Time) bool {
	return s.n >= m.rules.Confirmations && now.Sub(s.first()) >= m.rules.Grace &&
		(m.rules.Confirmations == 1 || o.issued.After(s.first()))
}

// suspects reports whether a variable seems to be gone without a complete proof.
func (m *memory) suspects(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.vars[id]
	return v != nil && v.suspicion != nil && !v.suspicion.confirmed
}

// newerThan returns, for a variable that is about to be requested, the earliest
// issue time of a token for an answer that completes a proof. It returns false if
// the answer cannot complete one.
func (m *memory) newerThan(id string) (moment time.Time, due bool) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.review(now)
	v := m.vars[id]
	if v == nil || v.suspicion == nil || v.held() && m.hold.sure {
		return time.Time{}, false
	}
	s := v.suspicion
	if s.confirmed || s.n+1 < m.rules.Confirmations || now.Sub(s.first()) < m.rules.Grace {
		return time.Time{}, false
	}
	if v.cleared.After(s.first()) {
		return v.cleared, true
	}
	return s.first(), true
}

// standing is called with the lock held.
func (m *memory) standing(id string, v *variable) Answer {
	s := v.suspicion
	if s.confirmed {
		return Answer{Verdict: Gone, Err: s.proof(id, v)}
	}
	a := m.doubt(id, v)
	if v.freed != nil {
		a.GoneFor = map[string]error{}
		for tenant := range v.freed {
			a.GoneFor[tenant] = s.proof(id, v)
		}
	}
	return a
}

// proof returns a complete proof. The caller holds the lock.
func (s *suspicion) proof(id string, v *variable) *GoneError {
	return &GoneError{
		Variable: id, Reason: s.reason, Identity: s.identity, FirstSeen: s.first(), LastSeen: s.seen,
		Observations: s.n, Times: slices.Clone(s.times), Held: v.heldFor, NeverFound: v.foundAt == 0,
	}
}

// doubt is called with the lock held.
func (m *memory) doubt(id string, v *variable) Answer {
	s := v.suspicion
	suspect := &SuspectError{
		Variable: id, Reason: s.reason, FirstSeen: s.first(),
		Observations: s.n, Needed: m.rules.Confirmations, NotBefore: s.first().Add(m.rules.Grace),
	}
	if v.held() && m.hold.announced && !m.hold.idle && s.n >= m.rules.Confirmations {
		return unknown(&HeldError{Suspicion: suspect, Variables: m.hold.gone, Of: m.hold.of, Until: m.hold.until})
	}
	return unknown(suspect)
}

// recall answers from memory for a variable that is set aside and cannot be
// requested now.
func (m *memory) recall(id string) Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.vars[id]
	switch {
	case v != nil && v.suspicion == nil && m.isAlike(v):
		since := m.unreadable[v.readers]
		return unknown(&SuspectError{Variable: id, Reason: Forbidden, FirstSeen: since, Needed: m.rules.Confirmations, NotBefore: since.Add(m.rules.Grace)})
	case v == nil || v.suspicion == nil || v.suspicion.confirmed && time.Since(v.suspicion.seen) > recallTime:
		return unknown(ErrBudget)
	}
	return m.standing(id, v)
}

// noteUnreadable records that Conjur refused to give a variable. The caller holds the
// lock.
func (m *memory) noteUnreadable(v *variable, at time.Time) {
	if before, known := m.unreadable[v.readers]; v.readers != "" && !(known && before.IsZero()) {
		m.unreadable[v.readers] = at
	}
}

// isAlike reports whether a variable that was never found is probably not readable:
// Conjur lists it with the same readers as one that it refused. That suffices to leave
// it out of a target with all variables that does not hold it, and proves nothing. The
// caller holds the lock.
func (m *memory) isAlike(v *variable) bool {
	at, ok := m.unreadable[v.readers]
	return m.all && ok && v.foundIn == 0 && time.Since(at) <= recallTime
}

// tell records which suspicions a fetch answered with. Its caller waits for the poll that
// finds the variable again.
func (m *memory) tell(answers map[string]Answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, a := range answers {
		if v := m.vars[id]; a.Verdict == Unknown && v != nil && v.suspicion != nil {
			v.suspicion.told = true
		}
	}
}

// isFresh reports whether the server called a variable gone so recently that a fetch uses
// that answer. It does not where each answer counts as evidence.
func (m *memory) isFresh(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.vars[id]
	return v != nil && v.suspicion != nil && time.Since(v.suspicion.seen) < min(freshTime, m.rules.ConfirmAfter)
}

// hasAnswer reports whether recall has an answer about a variable that is set aside.
func (m *memory) hasAnswer(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.vars[id]
	return v != nil && (v.suspicion != nil || m.isAlike(v))
}
