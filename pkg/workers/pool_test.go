package workers_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running runs a pool over the fixture in virtual time; the returned function
// ends it and waits for it.
func (f *fixture) running(c workers.PoolConfig) (*queue.Queue, *workers.Pool, func()) {
	q := queue.New(queue.Config{Backoff: retry.Backoff{First: time.Second}, Limit: -1})
	c.Work, c.Syncer = q, f.syncer
	pool := workers.NewPool(c)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { pool.Run(ctx) })
	return q, pool, func() { cancel(); wg.Wait(); synctest.Wait() }
}

// A process that is told to stop does not wait for a server that is silent.
func TestShutdownEndsTheFetchInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, group("a", "x"), group("b", "x"))
		f.values.set("x", "1")
		began := make(chan struct{})
		f.values.hook = func(ctx context.Context) { close(began); <-ctx.Done() }
		q, _, end := f.running(workers.PoolConfig{Workers: 1, Grace: time.Hour, Timeout: time.Hour})
		q.Add(queue.Hint{}, "file/a")
		<-began
		q.Add(queue.Hint{}, "file/b") // queued, but not begun
		told := time.Now()
		end()
		if took := time.Since(told); took != 0 {
			t.Errorf("the pool ended %v after it was told to", took)
		}
		f.assertFile("a.json", "")
		f.assertFile("b.json", "")
	})
}

func TestWritesUnderWayHaveTheGracePeriod(t *testing.T) {
	for name, c := range map[string]struct{ takes, want time.Duration }{
		"a slow write":          {10 * time.Second, 10 * time.Second},
		"one that does not end": {time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, group("a", "x"), group("b", "x"))
				f.values.set("x", "1")
				sink := &slowSink{Sink: f.syncer.Sink, takes: c.takes, began: make(chan struct{}, 2)}
				f.syncer.Sink = sink
				q, _, end := f.running(workers.PoolConfig{Workers: 1, Grace: time.Minute, Timeout: time.Hour})
				q.Add(queue.Hint{}, "file/a", "file/b") // one share
				<-sink.began
				told := time.Now()
				end()
				if took := time.Since(told); took != c.want {
					t.Errorf("the pool ended after %v, want %v", took, c.want)
				}
				if len(sink.began) > 0 {
					t.Error("another write began after the pool was told to stop")
				}
			})
		})
	}
}

// slowSink takes its time to write.
type slowSink struct {
	workers.Sink
	takes time.Duration
	began chan struct{}
}

func (s *slowSink) Apply(ctx context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	s.began <- struct{}{}
	select {
	case <-time.After(s.takes):
		return s.Sink.Apply(ctx, r, c)
	case <-ctx.Done():
		return r.Status.Sight, ctx.Err()
	}
}

func TestEachSyncHasADeadlineAndAllOverdueIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, group("a", "x"), group("b", "x"))
		var deadlines atomic.Int32
		release := make(chan struct{})
		f.values.hook = func(ctx context.Context) {
			<-ctx.Done()
			deadlines.Add(1)
			<-release // … and does not listen
		}
		q, pool, end := f.running(workers.PoolConfig{Workers: 2, Timeout: time.Minute})
		q.Add(queue.Hint{}, "file/a")
		time.Sleep(time.Second)
		q.Add(queue.Hint{}, "file/b")
		time.Sleep(90*time.Second - 1)
		synctest.Wait()
		if deadlines.Load() != 2 {
			t.Errorf("%d syncs saw their deadline of a minute", deadlines.Load())
		}
		if pool.Overdue() {
			t.Error("overdue within the slack")
		}
		time.Sleep(time.Nanosecond)
		if !pool.Overdue() {
			t.Error("all workers are stuck, and it is not seen")
		}
		close(release)
		synctest.Wait()
		if pool.Overdue() {
			t.Error("overdue, though the workers move again")
		}
		end()
	})
}

func TestManyKeysAtOnceNeedFewFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ts []*targets.Target
		for i := range 400 {
			ts = append(ts, group(fmt.Sprintf("g%03d", i), "x", fmt.Sprintf("v%03d", i)))
		}
		f := newFixture(t, ts...)
		for i := range 400 {
			f.values.set(fmt.Sprintf("v%03d", i), "1")
		}
		f.values.set("x", "1")
		f.values.hook = func(context.Context) { time.Sleep(10 * time.Millisecond) }
		q, _, end := f.running(workers.PoolConfig{Workers: 4})
		q.Add(queue.Hint{}, f.set.Keys()...)
		if err := q.WaitDone(t.Context()); err != nil {
			t.Fatal(err)
		}
		end()
		if n := len(f.values.fetches); n > 15 {
			t.Errorf("%d fetches for 400 targets, want a dozen", n)
		}
	})
}

// TestBoundsOfAShare: idle workers divide what waits, and take 16 to 100 keys each.
func TestBoundsOfAShare(t *testing.T) {
	for _, c := range []struct{ workers, waiting, fetches int }{
		{4, 15, 1}, {4, 16, 1}, {4, 17, 2}, // at least 16
		{1, 99, 1}, {1, 100, 1}, {1, 101, 2}, // at most 100
		{4, 67, 4}, {4, 68, 4}, {4, 69, 4}, // a quarter, rounded up
	} {
		synctest.Test(t, func(t *testing.T) {
			var ts []*targets.Target
			for i := range c.waiting {
				ts = append(ts, group(fmt.Sprintf("g%03d", i), "x"))
			}
			f := newFixture(t, ts...)
			f.values.set("x", "1")
			f.values.hook = func(context.Context) { time.Sleep(10 * time.Millisecond) }
			q, _, end := f.running(workers.PoolConfig{Workers: c.workers})
			q.Add(queue.Hint{}, f.set.Keys()...)
			if err := q.WaitDone(t.Context()); err != nil {
				t.Fatal(err)
			}
			end()
			if n := len(f.values.fetches); n != c.fetches {
				t.Errorf("%d fetches for %d targets by %d workers, want %d", n, c.waiting, c.workers, c.fetches)
			}
		})
	}
}

// listener is a Listener of two functions.
type listener struct {
	started func(queue.Item)
	settled func(workers.Outcome)
}

func (l listener) Started(item queue.Item)   { l.started(item) }
func (l listener) Settled(o workers.Outcome) { l.settled(o) }

func TestStartedComesBeforeTheFetchAndSettledBeforeTheKeyIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, group("a", "x"))
		f.values.set("x", "1")
		var story []string
		var q *queue.Queue
		f.values.hook = func(context.Context) { story = append(story, "fetch") }
		q, _, end := f.running(workers.PoolConfig{Listener: listener{
			func(item queue.Item) { story = append(story, "started by "+item.Trigger) },
			func(r workers.Outcome) {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				story = append(story, fmt.Sprintf("settled, wrote %v, queue at rest %v", r.Wrote, q.WaitSettled(ctx) == nil))
			},
		}})
		q.Add(queue.Hint{Trigger: "test"}, "file/a")
		synctest.Wait()
		end()
		want := "[started by test fetch settled, wrote true, queue at rest false]"
		if got := fmt.Sprint(story); got != want {
			t.Errorf("story is %s, want %s", got, want)
		}
	})
}
