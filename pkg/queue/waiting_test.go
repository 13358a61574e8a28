package queue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/queue"
)

// TestAKeyComesBackWhenItIsDue, or earlier after a hint.
func TestAKeyComesBackWhenItIsDue(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		q.Add(change, "a")
		takeOne(t, q, "a")
		begin := time.Now()
		q.DoneUntil("a", time.Hour)
		takeOne(t, q, "a")
		if waited := time.Since(begin); waited != time.Hour {
			t.Errorf("it came back after %v", waited)
		}
		q.DoneUntil("a", time.Hour)
		q.Add(tick, "a")
		takeOne(t, q, "a")
		if waited := time.Since(begin); waited != time.Hour {
			t.Errorf("a hint brought it back after %v", waited)
		}
		q.Forget("a")
		q.DoneUntil("a", time.Hour)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		q.Add(change, "b")
		takeOne(t, q, "b")
		q.Done("b", nil)
	})
}
