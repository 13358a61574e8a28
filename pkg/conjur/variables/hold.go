package variables

import (
	"slices"
	"time"
)

// HoldState is the kind of a hold event.
type HoldState string

const (
	// HoldBegan: most variables are gone at once, or have been unknown for long.
	// Variables that are gone do not get the verdict Gone for a time. If the reason
	// changes from unknown to gone, the hold restarts.
	HoldBegan HoldState = "began"
	// Passed: the time has passed. Variables that the next call finds gone get the
	// verdict Gone.
	Passed HoldState = "passed"
	// Returned: no held variable is gone any more, or none is in use.
	Returned HoldState = "returned"
	// Unfounded: most variables were unknown, and have now been found.
	Unfounded HoldState = "unfounded"
)

// HoldEvent is the begin or end of a hold of the Brake.
type HoldEvent struct {
	State HoldState
	Since time.Time
	Until time.Time // scheduled end, even if the hold ended earlier
	// Variables lists some of the variables that are held and gone, in ascending
	// order, at most ten. Gone is their total number, and Of is the number in use.
	Variables []string
	Gone, Of  int

	hold *hold
	all  []string // Variables is a part of it
}

// mostNamed bounds the variables that an event names.
const mostNamed = 10

// Doubted returns the variables that the server calls gone without a complete
// proof, in ascending order, and the active hold. The zero HoldEvent means that no
// hold is active or that it was not announced.
func (c *Client) Doubted() (ids []string, hold HoldEvent) {
	m := c.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, v := range m.vars {
		if v.suspicion != nil && !v.suspicion.confirmed {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if h := m.hold; h != nil && h.announced && !h.idle {
		hold = HoldEvent{State: HoldBegan, Since: h.since, Until: h.until, Gone: h.gone, Of: h.of}
	}
	return ids, hold
}

// postpone puts events back, before later ones.
func (m *memory) postpone(events []HoldEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(slices.Clone(events), m.events...)
}

func (m *memory) setIdle(h *hold, idle bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h.idle = idle
}

func (m *memory) isIdle(h *hold) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return h.idle
}
