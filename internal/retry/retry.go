// Package retry determines when to retry after a failure.
package retry

import (
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
