package conjur

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	firstRest   = 100 * time.Millisecond
	longestRest = time.Minute
	// restSpread is the share by which a rest may be shorter or longer, so
	// that a fleet which failed together does not return together.
	restSpread = 0.25
)

// Rest spaces attempts at what keeps failing: each time between two is about
// twice as long as the one before, up to a minute. The zero Rest is over.
type Rest struct {
	mu    sync.Mutex
	next  *backoff.ExponentialBackOff // nil: nothing has failed
	until time.Time
}

// Begin is called when an attempt failed; the next one is at least that much
// later.
func (r *Rest) Begin(least time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &backoff.ExponentialBackOff{
			InitialInterval:     firstRest,
			RandomizationFactor: restSpread,
			Multiplier:          2,
			MaxInterval:         time.Duration(float64(longestRest) / (1 + restSpread)),
			Stop:                backoff.Stop,
			Clock:               backoff.SystemClock,
		}
		r.next.Reset()
	}
	r.until = time.Now().Add(max(r.next.NextBackOff(), least))
}

// On reports whether it is too early for another attempt.
func (r *Rest) On() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.until)
}

// End is called when all is well.
func (r *Rest) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next, r.until = nil, time.Time{}
}
