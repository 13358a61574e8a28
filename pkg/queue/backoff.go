package queue

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/secretsync/syncer/pkg/targets"
)

// Backoff is exponential: it doubles from First, each delay spread by ±25 % so
// that a fleet does not return at once, and no delay is longer than Max. It
// never ends.
type Backoff struct {
	First time.Duration // zero: 10 ms
	Max   time.Duration // zero: 1 min; also bounds First
}

// leastDelay keeps a retry interval of zero from becoming a busy loop.
const leastDelay = 10 * time.Millisecond

// spread is the share by which a delay may be shorter or longer.
const spread = 0.25

func (b Backoff) start() *backoff.ExponentialBackOff {
	most := b.Max
	if most <= 0 {
		most = time.Minute
	}
	// The library spreads around its longest interval. Cutting off what comes
	// out above Max would make half of the delays exactly Max.
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

// limiter adapts Backoff to workqueue.TypedRateLimiter, which client-go fills
// only with limiters that have no jitter.
type limiter struct {
	mu      sync.Mutex
	backoff Backoff
	keys    map[targets.Key]*failures
}

type failures struct {
	count int
	next  *backoff.ExponentialBackOff
}

func newLimiter(b Backoff) *limiter {
	return &limiter{backoff: b, keys: map[targets.Key]*failures{}}
}

// SetBackoff spaces the retries of the keys that fail for the first time from
// now on.
func (q *Queue) SetBackoff(b Backoff) {
	q.limiter.mu.Lock()
	defer q.limiter.mu.Unlock()
	q.limiter.backoff = b
}

// When counts a failure of the key and returns how long it has to wait.
func (l *limiter) When(key targets.Key) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.keys[key]
	if f == nil {
		f = &failures{next: l.backoff.start()}
		l.keys[key] = f
	}
	f.count++
	return f.next.NextBackOff()
}

// Forget resets the key.
func (l *limiter) Forget(key targets.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.keys, key)
}

// NumRequeues is the number of failures since the last Forget.
func (l *limiter) NumRequeues(key targets.Key) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.keys[key]; f != nil {
		return f.count
	}
	return 0
}
