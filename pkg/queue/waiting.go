package queue

import (
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// Wait says which event a key waits for.
type Wait struct {
	Working bool      // for the end of its current sync
	Queued  bool      // for its turn
	Retry   time.Time // for a retry at this time
}

// Waiting returns the keys that are not done without error, with the events that they
// wait for. The zero Wait means that a key is parked or was given up. Such a key waits
// for a change of its input.
func (q *Queue) Waiting() map[targets.Key]Wait {
	q.mu.Lock()
	defer q.mu.Unlock()
	waits := make(map[targets.Key]Wait, len(q.keys))
	for key, s := range q.keys {
		if s.working || s.hinted || s.err != nil {
			waits[key] = Wait{Working: s.working, Queued: s.hinted && !s.working, Retry: s.retryAt}
		}
	}
	return waits
}

// DoneUntil takes a key back whose sync succeeded, and hands it out again after a delay,
// or earlier after a hint.
func (q *Queue) DoneUntil(key targets.Key, delay time.Duration) {
	q.mu.Lock()
	if s := q.keys[key]; !s.forgotten {
		s.retryAt = time.Now().Add(delay)
		q.work.AddAfter(key, delay)
	}
	q.mu.Unlock()
	q.Done(key, nil)
}
