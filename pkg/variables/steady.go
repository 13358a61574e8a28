package variables

import (
	"fmt"
	"slices"
	"time"
)

// Of two servers behind one address one may lag behind: a variable then has its
// new value and the one before it by turns. An earlier value that is back so soon
// is not believed before it has been answered for a while and no other has.

// mostEarlier bounds how many earlier values of a variable are remembered.
const mostEarlier = 8

// longestSteady is how many times as long as at first an earlier value must be
// answered after others came between.
const longestSteady = 4

// course is how a variable's value has changed lately.
type course struct {
	print    fingerprint // the value that is believed
	known    bool
	polled   fingerprint // the value that the last poll saw, which an empty answer stands for
	earlier  []earlier   // the values before, the latest last
	back     *comeback   // of an earlier value that is answered again; nil: of none
	need     time.Duration
	reported bool
}

// earlier is a value that was believed until another came.
type earlier struct {
	print fingerprint
	seen  time.Time // when it was answered last
}

// comeback is an earlier value that is answered again, without another between.
type comeback struct {
	print fingerprint
	since time.Time
}

// ReturnedError says that a variable has a value that it had before another, a
// short while ago, so that the server may be one that lags behind.
type ReturnedError struct {
	Variable string
	Until    time.Time // when it is believed, if nothing else comes between
}

func (e *ReturnedError) Error() string {
	return fmt.Sprintf("variable %q has an earlier value again, which one of several servers that lags behind may have answered: it is held back until %s, and until no other is answered",
		e.Variable, e.Until.UTC().Format(time.RFC3339))
}

// believe takes the value that a variable was answered with; an error when it is
// held back. It is called with the lock held.
func (m *memory) believe(id string, v *variable, p fingerprint) error {
	c, now := &v.course, time.Now()
	if m.rules.Steady == 0 || !c.known {
		*c = course{print: p, known: true, polled: c.polled}
		return nil
	}
	need := max(c.need, m.rules.Steady)
	c.earlier = slices.DeleteFunc(c.earlier, func(e earlier) bool { return now.Sub(e.seen) > need })
	if len(c.earlier) == 0 {
		c.need, c.reported = 0, false
	}
	if p == c.print {
		if c.back != nil { // it is not the only one
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
		v.changed = true // whoever asked meanwhile has another one
	}
	if len(c.earlier) == mostEarlier {
		c.earlier = slices.Delete(c.earlier, 0, 1)
	}
	c.earlier = append(c.earlier, earlier{c.print, now})
	c.print, c.back, c.need, c.reported = p, nil, 0, false
	return nil
}
