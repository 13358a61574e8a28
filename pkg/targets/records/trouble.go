package records

import "time"

const (
	// reminder is the interval at which a lasting trouble is logged again.
	reminder = time.Hour
	// mostAMinute bounds the lines of a trouble whose text keeps changing.
	mostAMinute = 3
)

// Trouble is a lasting error. The zero Trouble means none.
type Trouble struct {
	Began, Logged time.Time
	Text          string // as logged
	Times         int    // how often it occurred
	lines         int    // logged without a minute between them
}

// Met returns the trouble after err, where nil ends the trouble. log is true if the
// trouble must be logged: at its start, at its end, and at each reminder while it lasts.
// A changed text is also logged, at most three times a minute. It may occur only once: an
// invalid template is rendered again only after a change.
func (t Trouble) Met(err error, now time.Time) (after Trouble, log bool) {
	if err == nil {
		return Trouble{}, t.Times > 0
	}
	if t.Times == 0 {
		t.Began = now
	}
	t.Times++
	quiet := now.Sub(t.Logged)
	if quiet >= time.Minute {
		t.lines = 0
	}
	if t.Times == 1 || quiet >= reminder || t.Text != err.Error() && t.lines < mostAMinute {
		t.Logged, t.Text = now, err.Error()
		t.lines++
		return t, true
	}
	return t, false
}
