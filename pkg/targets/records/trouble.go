package records

import "time"

// reminder is the interval at which a lasting trouble is logged again.
const reminder = time.Hour

// Trouble is a lasting error. The zero Trouble means none.
type Trouble struct {
	Began, Logged time.Time
	Text          string // as logged
	Times         int    // how often it occurred
}

// Met returns the trouble after err, where nil ends the trouble. log is true if the
// trouble must be logged: at its start, at its end, and at each reminder while it lasts.
// A changed text is also logged, but at most once a minute.
func (t Trouble) Met(err error, now time.Time) (after Trouble, log bool) {
	if err == nil {
		return Trouble{}, t.Times > 0
	}
	if t.Times == 0 {
		t.Began = now
	}
	t.Times++
	quiet := now.Sub(t.Logged)
	if t.Times == 1 || quiet >= reminder || t.Text != err.Error() && quiet >= time.Minute {
		t.Logged, t.Text = now, err.Error()
		return t, true
	}
	return t, false
}
