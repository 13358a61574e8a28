package notify_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keys of the rounds below.
var five = []targets.Key{"file/a", "file/b", "file/c", "file/d", "file/e"}

// announcer is an Announcer of functions, each of which may be nil.
type announcer struct {
	announce func(context.Context)
	ended    func()
	retry    func() bool
}

func (a announcer) Announce(ctx context.Context) { a.announce(ctx) }

func (a announcer) Ended(context.Context) {
	if a.ended != nil {
		a.ended()
	}
}

func (a announcer) Retry(context.Context) bool { return a.retry == nil || a.retry() }

// inBubble runs f in virtual time beside a running Rounds that counts its
// announcements.
func inBubble(t *testing.T, f func(t *testing.T, r *notify.Rounds, announced, ended *atomic.Int32)) {
	synctest.Test(t, func(t *testing.T) {
		var announced, ended atomic.Int32
		r := &notify.Rounds{Announcer: announcer{
			announce: func(context.Context) { announced.Add(1) },
			ended:    func() { ended.Add(1) },
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.Run(ctx) })
		defer wg.Wait()
		defer cancel()
		f(t, r, &announced, &ended)
	})
}

func sync1(r *notify.Rounds, key targets.Key, wrote bool) {
	r.Started(key)
	r.Settled(key, wrote)
}

func assertCount(t *testing.T, what string, got *atomic.Int32, want int32) {
	t.Helper()
	synctest.Wait()
	if got.Load() != want {
		t.Fatalf("%s %d times, want %d", what, got.Load(), want)
	}
}

func TestFiveWritesOfOneRoundAreOneAnnouncementAfterTheLast(t *testing.T) {
	inBubble(t, func(t *testing.T, r *notify.Rounds, announced, ended *atomic.Int32) {
		r.Begin(five)
		for i, key := range five {
			assertCount(t, "announced", announced, 0)
			sync1(r, key, i != 4) // the last one found nothing to write
			time.Sleep(time.Second)
		}
		assertCount(t, "announced", announced, 1)
		assertCount(t, "ended", ended, 1)
		time.Sleep(time.Hour)
		assertCount(t, "announced", announced, 1)
	})
}

func TestARoundThatWroteNothingIsNotAnnounced(t *testing.T) {
	inBubble(t, func(t *testing.T, r *notify.Rounds, announced, ended *atomic.Int32) {
		r.Begin(five)
		for _, key := range five {
			sync1(r, key, false)
		}
		time.Sleep(time.Hour)
		assertCount(t, "announced", announced, 0)
		assertCount(t, "ended", ended, 1)
	})
}

func TestAStuckKeyDelaysTheAnnouncementByFiveSecondsAtMost(t *testing.T) {
	inBubble(t, func(t *testing.T, r *notify.Rounds, announced, ended *atomic.Int32) {
		r.Begin(five)
		sync1(r, "file/a", true)
		time.Sleep(notify.Patience - time.Millisecond)
		assertCount(t, "announced", announced, 0)
		time.Sleep(time.Millisecond)
		assertCount(t, "announced", announced, 1)
		for _, key := range five[1:] { // nothing new: no second announcement
			sync1(r, key, false)
		}
		assertCount(t, "ended", ended, 1)
		time.Sleep(time.Hour)
		assertCount(t, "announced", announced, 1)
	})
}

func TestASyncThatBeganBeforeTheTriggerDoesNotEndTheRound(t *testing.T) {
	inBubble(t, func(t *testing.T, r *notify.Rounds, announced, ended *atomic.Int32) {
		r.Started("file/a")
		r.Begin([]targets.Key{"file/a", "file/b"})
		sync1(r, "file/b", true)
		r.Settled("file/a", false) // it may have read the old value
		assertCount(t, "announced", announced, 0)
		sync1(r, "file/a", true)
		assertCount(t, "announced", announced, 1)
	})
}

func TestARefusedKeyDoesNotHoldTheRoundOpen(t *testing.T) {
	inBubble(t, func(t *testing.T, r *notify.Rounds, announced, ended *atomic.Int32) {
		r.Begin(five[:2])
		r.Drop(five[1:2])
		sync1(r, "file/a", true)
		assertCount(t, "announced", announced, 1)
	})
}

func TestARetryIsARoundOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *notify.Rounds, announced, ended *atomic.Int32) {
		sync1(r, "file/a", true)
		assertCount(t, "announced", announced, 1)
		sync1(r, "file/a", false)
		assertCount(t, "announced", announced, 1)
		assertCount(t, "ended", ended, 2)
	})
}

func TestTwoRoundsThatOverlapEachAnnounce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *notify.Rounds, announced, ended *atomic.Int32) {
		r.Begin(five[:2])
		r.Begin(five[1:3]) // b belongs to both
		sync1(r, "file/a", true)
		assertCount(t, "announced", announced, 0)
		sync1(r, "file/b", true)
		assertCount(t, "announced", announced, 1)
		sync1(r, "file/c", true)
		assertCount(t, "announced", announced, 2)
	})
}

func TestWhatIsDueIsAnnouncedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		announced := 0
		r := &notify.Rounds{Announcer: announcer{announce: func(ctx context.Context) {
			announced++
			if ctx.Err() != nil {
				t.Error("the last announcement got an ended context")
			}
		}}}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.Run(ctx) })
		r.Begin(five)
		sync1(r, "file/a", true)
		synctest.Wait()
		cancel()
		wg.Wait()
		if announced != 1 {
			t.Errorf("announced %d times, want once", announced)
		}
	})
}
