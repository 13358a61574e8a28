package variables

import (
	"slices"
	"time"
)

// HoldState is what happened to a hold of the Brake.
type HoldState string

const (
	// HoldBegan: most variables are gone at once, or are for long not known
	// to be there, and those that are gone are not called so for a time. It
	// begins anew when it was the latter and becomes the former.
	HoldBegan HoldState = "began"
	// Passed: the time is over. What one more look finds gone is called gone.
	Passed HoldState = "passed"
	// Returned: none that was held is gone any more, or is in use.
	Returned HoldState = "returned"
	// Unfounded: most were not known to be there, and now they are.
	Unfounded HoldState = "unfounded"
)

// HoldEvent says that a hold of the Brake began or ended.
type HoldEvent struct {
	State HoldState
	Since time.Time
	Until time.Time // when it ends, or would have ended, by itself
	// Variables are some of those that are held and gone, in ascending order,
	// at most ten. Gone is how many there are, of the number in use.
	Variables []string
	Gone, Of  int

	hold *hold
	all  []string // of which Variables are some
}

// mostNamed bounds how many variables an event names.
const mostNamed = 10

// Doubted returns the variables that the server calls gone and that are not
// proven to be, in ascending order, and the hold that is on; the zero HoldEvent
// is none, or one that was not announced.
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

// postpone puts events back, to be taken before later ones.
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
