package variables

import (
	"cmp"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/conjur"
)

// report logs the findings of a call at its end.
func (c *Client) report(isPoll bool) {
	c.reportHolds(isPoll)
	c.reportProofs()
	c.reportReturns()
}

// reportHolds logs the holds that began and ended, at the end of a call. While it
// is unknown whether a hold protects anything, its events wait for the next call.
func (c *Client) reportHolds(isPoll bool) {
	events := c.memory.holdEvents(isPoll)
	for i, e := range events {
		idle, known := c.isIdle(e)
		switch {
		case !known:
			c.memory.postpone(events[i:])
			return
		case idle:
			continue
		}
		c.log.Warn(map[HoldState]string{
			HoldBegan: "Removal is held back: so many variables of this identity are gone at once that it may be a mistake",
			Passed:    "Removal is no longer held back: the hold has ended, and variables that are still gone are removed",
			Returned:  "Removal is no longer held back: none of the variables is gone any more",
			Unfounded: "Removal is no longer held back: most variables are known to be there",
		}[e.State], zap.Int("gone", e.Gone), zap.Int("of", e.Of), zap.Strings("variables", e.Variables),
			zap.Time("since", e.Since), zap.Time("until", e.Until))
		if c.listener != nil {
			c.listener.Held(e)
		}
	}
}

// isIdle reports whether the hold of an event protects nothing, because no value of
// its variables was delivered, and whether that is known yet. An idle hold is not
// reported.
func (c *Client) isIdle(e HoldEvent) (idle, known bool) {
	if e.State == HoldBegan && c.delivered != nil {
		may, known := c.delivered(e.all)
		c.memory.setIdle(e.hold, !may)
		return !may, known
	}
	return c.memory.isIdle(e.hold), true
}

// meanings lists possible causes of each Reason.
var meanings = map[Reason]string{
	Missing:   "deleted, never given a value, or not visible to this identity",
	Forbidden: "visible to this identity, without the privilege " + conjur.Execute,
}

// reportProofs logs the completed proofs, grouped by reason. A variable is not
// mentioned again until it is back.
func (c *Client) reportProofs() {
	proofs := c.memory.takeProofs()
	for reason, meaning := range meanings {
		var names []string
		var first *GoneError
		for _, p := range proofs {
			if p.Reason == reason {
				first, names = cmp.Or(first, p), append(names, p.Variable)
			}
		}
		if len(names) > 0 {
			c.log.Warn("Proven to be gone; the values are removed, unless removal is disabled or a general variable exists; targets that need them are not written",
				zap.String("reason", string(reason)), zap.String("meaning", meaning), zap.Int("count", len(names)),
				zap.Strings("variables", names[:min(len(names), mostNamed)]), zap.String("proof", first.Error()))
		}
	}
}

func (m *memory) takeProofs() []*GoneError {
	m.mu.Lock()
	defer m.mu.Unlock()
	proofs := m.proofs
	m.proofs = nil
	return proofs
}

// reportReturns logs the variables with an earlier value that is held back.
func (c *Client) reportReturns() {
	c.memory.mu.Lock()
	returns := c.memory.returns
	c.memory.returns = nil
	c.memory.mu.Unlock()
	if len(returns) == 0 {
		return
	}
	var names []string
	for _, r := range returns {
		names = append(names, r.Variable)
	}
	c.log.Warn("Variables have an earlier value again; it is held back for a while, because a server may lag behind",
		zap.Int("count", len(names)), zap.Strings("variables", names[:min(len(names), mostNamed)]), zap.Time("until", returns[0].Until))
}
