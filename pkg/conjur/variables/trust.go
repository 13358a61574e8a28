package variables

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
)

// trust is the likelihood that a variable exists. Variables of one trust share a
// batch. A batch is refused as a whole, so variables that were found before must
// not wait for the diagnosis of others.
type trust int

const (
	proven   trust = iota // found before
	untried               // never found
	unlisted              // also not in the last list of variables
	trusts   = iota
)

// trust is called with the lock held.
func (v *variable) trust() trust {
	switch {
	case v == nil:
		return untried
	case v.unlisted:
		return unlisted
	case v.foundIn == 0:
		return untried
	}
	return proven
}

// question lists the variables that a call requests, each list in ascending order.
type question struct {
	shared [trusts][]string // for batches
	single [trusts][]string // requested individually each time
	// aside lists variables that are requested individually in rotation. Variables
	// that were found before come first, then those with the oldest request.
	aside []string
}

func (q *question) put(id string, at place) {
	if at.single {
		q.single[at.trust] = append(q.single[at.trust], id)
	} else {
		q.shared[at.trust] = append(q.shared[at.trust], id)
	}
}

// together lists the variables for batches, the most trusted first.
func (q *question) together() []string { return slices.Concat(q.shared[:]...) }

// each lists all variables except those that are set aside.
func (q *question) each() []string { return slices.Concat(q.together(), slices.Concat(q.single[:]...)) }

// equal reports whether both questions request the same each time.
func (q *question) equal(other question) bool {
	for t := range q.shared {
		if !slices.Equal(q.shared[t], other.shared[t]) || !slices.Equal(q.single[t], other.single[t]) {
			return false
		}
	}
	return true
}

// sort makes a question of ids.
func (m *memory) sort(ids []string) (q question) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		v := m.vars[id]
		if v != nil && v.aside {
			q.aside = append(q.aside, id)
			continue
		}
		q.put(id, place{v.trust(), !conjur.Batchable(id) || v != nil && now.Before(v.soloUntil)})
	}
	slices.SortStableFunc(q.aside, func(a, b string) int {
		v, w := m.vars[a], m.vars[b]
		if (v.foundIn == 0) != (w.foundIn == 0) {
			return cmp.Compare(w.foundIn, v.foundIn)
		}
		return cmp.Compare(v.asked, w.asked)
	})
	return q
}

func (m *memory) trustOf(id string) trust {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.vars[id].trust()
}

// byTrust groups ids by trust.
func (m *memory) byTrust(ids []string) (by [trusts][]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		t := m.vars[id].trust()
		by[t] = append(by[t], id)
	}
	return by
}

// listed applies the sorted list of all existing variables to the ids of a call. A
// variable that was never found, or was refused, and is not listed, loses its trust
// until it is found or listed. So does one that is listed like an unreadable one. A
// newly listed variable that was set aside returns to the batches. If a proof began, it
// is next in the rotation instead. So is one whose readers changed.
func (m *memory) listed(list []string, readers map[string]string, ids, refused []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		v := m.get(id)
		if v.readers != "" && v.readers != readers[id] {
			v.asked = 0
		}
		switch v.readers = readers[id]; {
		case v.readers == "":
		case v.foundIn > 0:
			m.unreadable[v.readers] = time.Time{}
		case v.suspicion != nil && v.suspicion.reason == Forbidden:
			m.noteUnreadable(v, v.suspicion.seen)
		}
	}
	for _, id := range ids {
		v := m.get(id)
		switch _, there := slices.BinarySearch(list, id); {
		case v.foundIn == 0 && (!there || m.isAlike(v)):
			v.unlisted = true
		case there && (v.unlisted || v.suspicion != nil && v.suspicion.reason == Missing):
			v.unlisted, v.asked, v.aside = false, 0, v.aside && v.suspicion != nil
		}
	}
	for _, id := range refused {
		if _, there := slices.BinarySearch(list, id); !there {
			m.get(id).unlisted = true
		}
	}
}

// One of two servers behind a load balancer may lag. A variable then alternates
// between its new value and the one before. An earlier value that returns so soon
// is accepted only after it was the only answer for a while.

// mostEarlier bounds the earlier values of a variable in memory.
const mostEarlier = 8

// longestSteady bounds the growth of the required time after alternations, as a
// multiple of the initial time.
const longestSteady = 4

// stability is the recent history of a variable's value.
type stability struct {
	print    fingerprint // the accepted value
	known    bool
	polled   fingerprint // value in the last poll, to which an empty answer refers
	earlier  []earlier   // earlier values, latest last
	back     *comeback   // the earlier value that returned; nil if none
	need     time.Duration
	reported bool
}

// earlier is a value that was accepted until another came.
type earlier struct {
	print fingerprint
	seen  time.Time // time of its last answer
}

// comeback is an earlier value that is answered again, without another value in
// between.
type comeback struct {
	print fingerprint
	since time.Time
}

// ReturnedError means that a variable has a recent earlier value again. The server
// may be one that lags.
type ReturnedError struct {
	Variable string
	Until    time.Time // when it is accepted, if no other value is answered
}

func (e *ReturnedError) Error() string {
	return fmt.Sprintf("variable %q has an earlier value again, perhaps from a server that lags behind; it is held back until %s, and until all answers agree",
		e.Variable, e.Until.UTC().Format(time.RFC3339))
}

// believe processes an answered value. It returns an error if the value is held
// back. The caller holds the lock.
func (m *memory) believe(id string, v *variable, p fingerprint) error {
	c, now := &v.stability, time.Now()
	if m.rules.Steady == 0 || !c.known {
		*c = stability{print: p, known: true, polled: c.polled}
		return nil
	}
	need := max(c.need, m.rules.Steady)
	c.earlier = slices.DeleteFunc(c.earlier, func(e earlier) bool { return now.Sub(e.seen) > need })
	if len(c.earlier) == 0 {
		c.need, c.reported = 0, false
	}
	if p == c.print {
		if c.back != nil { // another value was answered in between
			c.back, c.need = nil, min(2*need, longestSteady*m.rules.Steady)
		}
		return nil
	}
	i := slices.IndexFunc(c.earlier, func(e earlier) bool { return e.print == p })
	if i >= 0 {
		c.earlier[i].seen = now
		if c.back == nil || c.back.print != p {
			c.back = &comeback{p, now}
		}
		if now.Sub(c.back.since) < need {
			until := c.back.since.Add(need)
			if !c.reported {
				c.reported, m.returns = true, append(m.returns, &ReturnedError{id, until})
			}
			return &ReturnedError{id, until}
		}
		c.earlier = slices.Delete(c.earlier, i, i+1)
		v.changed = true // a fetch in the meantime may have delivered another value
	}
	if len(c.earlier) == mostEarlier {
		c.earlier = slices.Delete(c.earlier, 0, 1)
	}
	c.earlier = append(c.earlier, earlier{c.print, now})
	c.print, c.back, c.need, c.reported = p, nil, 0, false
	return nil
}
