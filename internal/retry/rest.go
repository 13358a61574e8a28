package retry

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

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
