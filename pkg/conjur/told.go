package conjur

import (
	"cmp"

	"go.uber.org/zap"
)

// tell logs, at the end of a call, what it has found out.
func (c *Client) tell(isPoll bool) {
	c.tellOfHolds(isPoll)
	c.tellOfProofs()
	c.tellOfReturns()
}

// meanings say what a Reason may be due to.
var meanings = map[Reason]string{
	Missing:   "deleted, never given a value, or not visible to this identity",
	Forbidden: "visible to this identity, without the privilege " + execute,
}

// tellOfProofs logs the proofs that have been completed, those of one reason
// together. It is the last that is said of a variable until it is back.
func (c *Client) tellOfProofs() {
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
			c.log.Warn("Proven to be gone: until it is back nothing that needs it is written, and what holds it is removed unless removal is switched off",
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
