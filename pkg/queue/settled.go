package queue

import (
	"context"
	"maps"
)

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
