package variables

import (
	"cmp"
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
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sortLocked(ids)
}

// sortInUse makes a question of the variables of the poll in progress.
func (m *memory) sortInUse() (q question) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	isSpecial := func(v *variable) bool { return v.aside || v.trust() != proven || now.Before(v.soloUntil) }
	if m.inUse.hasCommas || slices.ContainsFunc(m.inUse.vars, isSpecial) {
		return m.sortLocked(m.inUse.ids)
	}
	q.shared[proven] = m.inUse.ids
	return q
}

// sortLocked is called with the lock held.
func (m *memory) sortLocked(ids []string) (q question) {
	now := time.Now()
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
