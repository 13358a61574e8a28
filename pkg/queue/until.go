package queue

import (
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

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
