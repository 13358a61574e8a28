package queue

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/targets"
)

// limiter adapts retry.Backoff to workqueue.TypedRateLimiter. All limiters in client-go
// lack jitter.
type limiter struct {
	mu      sync.Mutex
	backoff retry.Backoff
	keys    map[targets.Key]*failures
}

type failures struct {
	count int
	next  backoff.BackOff
}

func newLimiter(b retry.Backoff) *limiter {
	return &limiter{backoff: b, keys: map[targets.Key]*failures{}}
}

// SetBackoff sets the retry delays for keys that fail for the first time from now on.
func (q *Queue) SetBackoff(b retry.Backoff) {
	q.limiter.mu.Lock()
	defer q.limiter.mu.Unlock()
	q.limiter.backoff = b
}

// When counts a failure of the key and returns the key's delay.
func (l *limiter) When(key targets.Key) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.keys[key]
	if f == nil {
		f = &failures{next: l.backoff.Start()}
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

// NumRequeues returns the number of failures since the last Forget.
func (l *limiter) NumRequeues(key targets.Key) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.keys[key]; f != nil {
		return f.count
	}
	return 0
}
