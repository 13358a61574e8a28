package retry

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestBounds: each delay is near twice the one before, from the first to the longest. Many
// draws come near both ends of the spread.
func TestBounds(t *testing.T) {
	for what, c := range map[string]struct {
		of   Backoff
		want []time.Duration
	}{
		"the zero value":              {Backoff{}, []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond}},
		"a first one below the least": {Backoff{First: leastDelay - 1}, []time.Duration{10 * time.Millisecond}},
		"the longest by default":      {Backoff{First: time.Hour}, []time.Duration{48 * time.Second, 48 * time.Second}},
		"a longest one":               {Backoff{First: time.Second, Max: 5 * time.Second}, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second}},
		"one nanosecond":              {Backoff{First: time.Second, Max: 1}, []time.Duration{0}},
	} {
		least, most := make([]time.Duration, len(c.want)), make([]time.Duration, len(c.want))
		for draw := range 2000 {
			delays := c.of.Start()
			for i := range c.want {
				d := delays.NextBackOff()
				if draw == 0 {
					least[i], most[i] = d, d
				}
				least[i], most[i] = min(least[i], d), max(most[i], d)
			}
		}
		for i, want := range c.want {
			near := want / 50
			if low := want * 3 / 4; least[i] < low || least[i] > low+near {
				t.Errorf("%s: delay %d is at least %v, want %v", what, i, least[i], low)
			}
			if high := want * 5 / 4; most[i] > high || most[i] < high-near {
				t.Errorf("%s: delay %d is at most %v, want %v", what, i, most[i], high)
			}
		}
	}
}

func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Rest
		if r.On() {
			t.Error("it begins with a rest")
		}
		// lasts returns how long a rest lasts, and waits until it ends.
		lasts := func() time.Duration {
			began := time.Now()
			for r.On() {
				time.Sleep(time.Millisecond)
			}
			return time.Since(began)
		}
		for _, want := range []time.Duration{firstRest, 2 * firstRest, 4 * firstRest} {
			r.Begin(0)
			if got := lasts(); got < want*3/4 || got > want*5/4+time.Millisecond {
				t.Errorf("a rest of %v, want about %v", got, want)
			}
		}
		r.End()
		r.Begin(firstRest * 3 / 2)
		if got := lasts(); got != firstRest*3/2 {
			t.Errorf("after a success, a rest of %v; want what was asked for", got)
		}
		r.Begin(0)
		r.End()
		if r.On() {
			t.Error("a success does not end the rest")
		}
	})
}
