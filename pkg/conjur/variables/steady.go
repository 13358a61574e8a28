package variables

import (
	"fmt"
	"slices"
	"time"

	"github.com/secretsync/syncer/internal/fingerprint"
)

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
	print    fingerprint.Fingerprint // the accepted value
	known    bool
	polled   fingerprint.Fingerprint // value in the last poll, to which an empty answer refers
	earlier  []earlier               // earlier values, latest last
	back     *comeback               // the earlier value that returned; nil if none
	need     time.Duration
	reported bool
}

// earlier is a value that was accepted until another came.
type earlier struct {
	print fingerprint.Fingerprint
	seen  time.Time // time of its last answer
}

// comeback is an earlier value that is answered again, without another value in
// between.
type comeback struct {
	print fingerprint.Fingerprint
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

// believe processes a value that was answered now. It returns an error if the value is held
// back. The caller holds the lock.
func (m *memory) believe(id string, v *variable, p fingerprint.Fingerprint, now time.Time) error {
	c := &v.stability
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
