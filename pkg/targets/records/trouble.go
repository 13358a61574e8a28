package records

import "time"

// reminder is how often a trouble that lasts is logged again.
const reminder = time.Hour

// Trouble is an error that lasts. The zero Trouble is none.
type Trouble struct {
	Began, Logged time.Time
	Text          string // as it was logged
	Times         int    // that it was met
}

// Met returns the trouble after err, nil meaning that it is over, and whether
// the log is to say so: when it begins, each reminder while it lasts, when its
// text is another one, though at most once a minute, and when it ends.
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
