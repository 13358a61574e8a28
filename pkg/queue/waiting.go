package queue

import (
	"context"
	"maps"
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

// announceLocked wakes the goroutines that wait for a state of the queue.
func (q *Queue) announceLocked() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// WaitSettled waits until every key is done, backing off or parked. Then everything that
// can be up to date now is up to date. It returns early with the context's error.
func (q *Queue) WaitSettled(ctx context.Context) error {
	return q.wait(ctx, func(s *state) bool { return !s.hinted && !s.working })
}

// WaitDone waits until every key is done, parked or given up, so that no retry is
// scheduled. It returns early with the context's error.
func (q *Queue) WaitDone(ctx context.Context) error {
	return q.wait(ctx, func(s *state) bool { return !s.hinted && !s.working && s.retryAt.IsZero() })
}

func (q *Queue) wait(ctx context.Context, rests func(*state) bool) error {
	for {
		q.mu.Lock()
		resting := true
		for s := range maps.Values(q.keys) {
			resting = resting && rests(s)
		}
		changed := q.changed
		q.mu.Unlock()
		if resting {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
