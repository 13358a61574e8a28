// Package retry determines when to retry after a failure.
package retry

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Backoff is exponential and never ends. It doubles from First up to Max. Each delay is
// spread by ±25 %, so that a fleet does not return at once. No delay is longer than Max.
type Backoff struct {
	First time.Duration // zero: 10 ms
	Max   time.Duration // zero: 1 min; also bounds First
}

// leastDelay keeps a retry interval of zero from becoming a busy loop.
const leastDelay = 10 * time.Millisecond

// spread is the maximum deviation of a delay, as a fraction of it.
const spread = 0.25

// Start returns the delays, from the first one on.
func (b Backoff) Start() *backoff.ExponentialBackOff {
	most := b.Max
	if most <= 0 {
		most = time.Minute
	}
	// The library spreads around its longest interval. Truncation at Max would make half
	// of the delays exactly Max.
	most = time.Duration(float64(most) / (1 + spread))
	e := &backoff.ExponentialBackOff{
		InitialInterval:     min(max(b.First, leastDelay), most),
		RandomizationFactor: spread,
		Multiplier:          2,
		MaxInterval:         most,
		MaxElapsedTime:      0, // the library's default gives up after 15 min
		Stop:                backoff.Stop,
		Clock:               backoff.SystemClock,
	}
	e.Reset()
	return e
}

// firstRest is the shortest rest.
const firstRest = 100 * time.Millisecond

// Rest spaces attempts at an operation that keeps failing. Each pause is about twice as
// long as the one before, up to a minute. The zero Rest permits an attempt at once.
type Rest struct {
	mu    sync.Mutex
	next  *backoff.ExponentialBackOff // nil: nothing has failed
	until time.Time
}

// Begin is called after a failed attempt. The next attempt is at least this much later.
func (r *Rest) Begin(least time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = Backoff{First: firstRest}.Start()
	}
	r.until = time.Now().Add(max(r.next.NextBackOff(), least))
}

// On reports whether it is too early for another attempt.
func (r *Rest) On() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.until)
}

// End is called after a success.
func (r *Rest) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next, r.until = nil, time.Time{}
}
