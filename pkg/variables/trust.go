package variables

import (
	"cmp"
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
)

// trust is how likely it is that a variable is there. Variables of one trust
// share a batch: a batch is refused as a whole, so those that were found before
// must not wait until it is known which of the others are at fault.
type trust int

const (
	proven   trust = iota // found before
	untried               // never found
	unlisted              // not in the list of variables either, when it was looked at last
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

// question is what a call is to ask for, each in ascending order.
type question struct {
	shared [trusts][]string // what batches may ask for
	single [trusts][]string // what is asked for by itself each time
	// aside is what is asked for by itself when its turn comes: what was found
	// before comes first, and then what was not asked for longest.
	aside []string
}

func (q *question) put(id string, at place) {
	if at.single {
		q.single[at.trust] = append(q.single[at.trust], id)
	} else {
		q.shared[at.trust] = append(q.shared[at.trust], id)
	}
}

// together lists what batches may ask for, the most trusted first.
func (q *question) together() []string { return slices.Concat(q.shared[:]...) }

// each lists all but what is set aside.
func (q *question) each() []string { return slices.Concat(q.together(), slices.Concat(q.single[:]...)) }

// equal reports whether the same is to be asked for each time.
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

// byTrust splits ids.
func (m *memory) byTrust(ids []string) (by [trusts][]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		t := m.vars[id].trust()
		by[t] = append(by[t], id)
	}
	return by
}

// listed takes the sorted list of the variables that there are. Of those that a
// call is about, what was never found, or was refused, and is not listed, is not
// trusted until it is found or listed. What has come into the list, and was set
// aside, has its turn next.
func (m *memory) listed(list, ids, refused []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		v := m.get(id)
		switch _, there := slices.BinarySearch(list, id); {
		case there && v.unlisted:
			v.unlisted, v.asked = false, 0
		case !there && v.foundIn == 0:
			v.unlisted = true
		}
	}
	for _, id := range refused {
		if _, there := slices.BinarySearch(list, id); !there {
			m.get(id).unlisted = true
		}
	}
}
