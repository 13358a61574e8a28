package queue

import (
	"context"
	"maps"
)

// announceLocked wakes those who wait for a state of the queue.
func (q *Queue) announceLocked() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// WaitSettled waits until every key is done, backing off or parked: nothing
// can be brought up to date now that is not. It returns early with the
// context's error.
func (q *Queue) WaitSettled(ctx context.Context) error {
	return q.wait(ctx, func(s *state) bool { return !s.hinted && !s.working })
}

// WaitDone waits until every key is done, parked or given up: no retry is
// coming either. It returns early with the context's error.
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
