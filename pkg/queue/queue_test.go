package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errPassing = errors.New("passing")
	errLasting = errors.New("lasting")

	tick   = queue.Hint{Trigger: "tick"}
	change = queue.Hint{Trigger: "poll", Wakes: true}
)

// inBubble runs f in virtual time with a queue that retries without limit
// after 1 s, 2 s, 4 s, … (±25 %), at most 30 s.
func inBubble(t *testing.T, f func(t *testing.T, q *queue.Queue)) {
	withConfig(t, queue.Config{
		Backoff:   retry.Backoff{First: time.Second, Max: 30 * time.Second},
		Limit:     -1,
		Permanent: func(err error) bool { return errors.Is(err, errLasting) },
	}, f)
}

func withConfig(t *testing.T, c queue.Config, f func(t *testing.T, q *queue.Queue)) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(c)
		defer synctest.Wait()
		defer q.ShutDown()
		f(t, q)
	})
}

// upTo is a share of so many keys, however many wait.
func upTo(most int) func(int) int { return func(int) int { return most } }

// takeOne takes the key that must be the next and the only one.
func takeOne(t *testing.T, q *queue.Queue, want targets.Key) queue.Item {
	t.Helper()
	items := q.Take(upTo(10))
	if len(items) != 1 || items[0].Key != want {
		t.Fatalf("took %v, want one item of %s", items, want)
	}
	return items[0]
}

// assertEmpty checks that nothing is ready now, nor in the given time.
func assertEmpty(t *testing.T, q *queue.Queue, within time.Duration) {
	t.Helper()
	time.Sleep(within)
	synctest.Wait()
	if n := q.Len(); n != 0 {
		t.Fatalf("%d keys are ready within %v, want none", n, within)
	}
}

func TestTenHintsAreOneItem(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		for range 10 {
			q.Add(tick, "file/a", "file/b")
		}
		if items := q.Take(upTo(10)); len(items) != 2 {
			t.Fatalf("took %v, want a and b once each", items)
		}
		q.Done("file/a", nil)
		q.Done("file/b", nil)
		assertEmpty(t, q, time.Hour)
	})
}

func TestAShareIsWorkedOutWhenTheKeysAreThere(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		var taken []queue.Item
		var wg sync.WaitGroup
		wg.Go(func() {
			taken = q.Take(func(waiting int) int { return waiting / 2 })
		})
		synctest.Wait() // it waits before there is anything
		q.Add(tick, "file/a", "file/b", "file/c", "file/d")
		wg.Wait()
		if len(taken) != 2 {
			t.Errorf("took %d of four keys, want half", len(taken))
		}
		for _, item := range taken {
			q.Done(item.Key, nil)
		}
	})
}

func TestHintsDuringWorkComeBackOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		q.Add(tick, "file/a")
		takeOne(t, q, "file/a")
		for range 10 {
			q.Add(change, "file/a")
		}
		assertEmpty(t, q, time.Second) // not while it is worked on
		q.Done("file/a", nil)
		takeOne(t, q, "file/a")
		q.Done("file/a", nil)
		assertEmpty(t, q, time.Hour)
	})
}

// A change that a tick follows, while the key is being worked on, is still a
// change: what the sync that fails has not seen is not put off.
func TestATickAfterAChangeDuringWorkDelaysNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		q.Add(tick, "file/a")
		takeOne(t, q, "file/a")
		q.Add(change, "file/a")
		q.Add(tick, "file/a")
		q.Done("file/a", errPassing)
		began := time.Now()
		takeOne(t, q, "file/a")
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the key came back after %v", waited)
		}
		q.Done("file/a", nil)
	})
}

func TestLenCountsWhatWaitsForAWorkerNow(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		want := func(state string, want int) {
			t.Helper()
			if n := q.Len(); n != want {
				t.Errorf("%s: %d, want %d", state, n, want)
			}
		}
		q.Add(tick, "file/a")
		want("hinted", 1)
		takeOne(t, q, "file/a")
		want("at work", 0)
		q.Add(change, "file/a")
		want("at work and hinted", 0)
		q.Done("file/a", errPassing)
		want("given back", 1)
		takeOne(t, q, "file/a")
		q.Done("file/a", errPassing)
		want("backing off", 0)
		time.Sleep(time.Minute)
		want("due again", 1)
	})
}

func TestNeverTwoWorkersOnOneKey(t *testing.T) {
	q := queue.New(queue.Config{})
	var busy [5]atomic.Int32
	var done atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for items := q.Take(upTo(3)); len(items) > 0; items = q.Take(upTo(3)) {
				for _, item := range items {
					var n int
					fmt.Sscanf(string(item.Key), "file/%d", &n)
					if busy[n].Add(1) != 1 {
						t.Errorf("two workers hold %s", item.Key)
					}
				}
				for _, item := range items {
					var n int
					fmt.Sscanf(string(item.Key), "file/%d", &n)
					busy[n].Add(-1)
					q.Done(item.Key, nil)
					done.Add(1)
				}
			}
		})
	}
	for i := range 5000 {
		q.Add(change, targets.FileKey(fmt.Sprint(i%5)))
	}
	if err := q.WaitDone(t.Context()); err != nil {
		t.Fatal(err)
	}
	q.ShutDown()
	wg.Wait()
	if done.Load() < 5 {
		t.Errorf("%d items were worked on, want each key at least once", done.Load())
	}
}

func TestRetriesAreSpacedExponentially(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		want := time.Second
		for i, gap := range gaps(t, q, 9) {
			if gap < want*3/4 || gap > want*5/4 {
				t.Errorf("retry %d came after %v, want %v ±25 %%", i+1, gap, want)
			}
			want = min(2*want, 24*time.Second)
		}
	})
}

// At the cap the delays must differ too: those who failed together would else
// all return together for ever.
func TestRetriesAtTheCapDiffer(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		atCap := gaps(t, q, 45)[5:]
		for _, gap := range atCap {
			if gap > 30*time.Second {
				t.Errorf("a delay of %v is above the cap of 30s", gap)
			}
		}
		slices.Sort(atCap)
		if different := slices.Compact(atCap); len(different) < 38 {
			t.Errorf("of 40 delays at the cap only %d differ", len(different))
		}
	})
}

// gaps takes a key that fails n times and reports how long each retry waited.
func gaps(t *testing.T, q *queue.Queue, n int) (gaps []time.Duration) {
	t.Helper()
	q.Add(tick, "file/a")
	takeOne(t, q, "file/a")
	for range n {
		q.Done("file/a", errPassing)
		before := time.Now()
		if item := takeOne(t, q, "file/a"); item.Trigger != "retry" {
			t.Errorf("trigger of a retry is %q", item.Trigger)
		}
		gaps = append(gaps, time.Since(before).Truncate(time.Millisecond))
	}
	q.Done("file/a", nil)
	return gaps
}

func TestSuccessResetsTheBackoff(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		q.Add(tick, "file/a")
		for range 6 {
			takeOne(t, q, "file/a")
			q.Done("file/a", errPassing)
		}
		takeOne(t, q, "file/a")
		q.Done("file/a", nil)
		q.Add(tick, "file/a")
		takeOne(t, q, "file/a")
		q.Done("file/a", errPassing)
		before := time.Now()
		takeOne(t, q, "file/a")
		if gap := time.Since(before); gap > 1250*time.Millisecond {
			t.Errorf("the first retry after a success came after %v, want about 1s", gap)
		}
		q.Done("file/a", nil)
	})
}

func TestOnlyAChangedInputWakesAKeyThatRests(t *testing.T) {
	for name, err := range map[string]error{"backing off": errPassing, "parked": errLasting} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *queue.Queue) {
				q.Add(tick, "file/a")
				takeOne(t, q, "file/a")
				q.Add(tick, "file/a") // while it is worked on: no way around the rest either
				q.Done("file/a", err)
				assertEmpty(t, q, 500*time.Millisecond) // the least delay is 750 ms
				if refused := q.Add(tick, "file/a"); !slices.Equal(refused, []targets.Key{"file/a"}) {
					t.Errorf("a tick was refused for %v, want file/a", refused)
				}
				assertEmpty(t, q, 0)
				if refused := q.Add(change, "file/a"); refused != nil {
					t.Errorf("a change was refused for %v", refused)
				}
				if item := takeOne(t, q, "file/a"); item.Trigger != "poll" {
					t.Errorf("trigger is %q, want that of the change", item.Trigger)
				}
				q.Done("file/a", nil)
				assertEmpty(t, q, time.Hour) // the retry that was coming is void
			})
		})
	}
}

func TestPermanentErrorsAreParked(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		q.Add(tick, "file/a")
		takeOne(t, q, "file/a")
		q.Done("file/a", fmt.Errorf("wrapped: %w", errLasting))
		if err := q.WaitDone(t.Context()); err != nil {
			t.Fatal(err)
		}
		assertEmpty(t, q, 24*time.Hour)
	})
}

func TestWhatIsForgottenIsNotTriedAgain(t *testing.T) {
	for _, when := range []string{"parked", "backing off", "waiting", "worked on"} {
		t.Run(when, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *queue.Queue) {
				q.Add(tick, "file/a")
				switch when {
				case "parked", "backing off":
					takeOne(t, q, "file/a")
					q.Done("file/a", map[string]error{"parked": errLasting, "backing off": errors.New("down")}[when])
					q.Forget("file/a")
				case "waiting":
					q.Forget("file/a")
				default:
					takeOne(t, q, "file/a")
					q.Forget("file/a")
					q.Costly("file/a", true)
					q.Done("file/a", errors.New("down"))
				}
				if n := q.Kept(); n != 0 {
					t.Errorf("the queue keeps %d entries", n)
				}
				if err := q.WaitDone(t.Context()); err != nil {
					t.Fatal(err)
				}
				assertEmpty(t, q, time.Hour)
				if refused := q.Add(tick, "file/a"); len(refused) > 0 {
					t.Error("it is refused when it is there again")
				}
				takeOne(t, q, "file/a")
				q.Done("file/a", nil)
			})
		})
	}
}

func TestLimitCountsRetries(t *testing.T) {
	for limit, want := range map[int]int{0: 1, 2: 3} {
		c := queue.Config{Backoff: retry.Backoff{First: time.Second}, Limit: limit}
		withConfig(t, c, func(t *testing.T, q *queue.Queue) {
			q.Add(tick, "file/a")
			for range want {
				takeOne(t, q, "file/a")
				q.Done("file/a", errPassing)
			}
			if err := q.WaitDone(t.Context()); err != nil {
				t.Fatal(err)
			}
			assertEmpty(t, q, 24*time.Hour)
		})
	}
}

func TestSettledDoesNotWaitForRetriesButDoneDoes(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		q.Add(tick, "file/a", "file/b")
		takenNow := q.Take(upTo(2))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.WaitSettled(ctx); err == nil {
			t.Error("settled while two keys are worked on")
		}
		q.Done(takenNow[0].Key, nil)
		q.Done(takenNow[1].Key, errPassing)
		if err := q.WaitSettled(t.Context()); err != nil {
			t.Error(err)
		}
		var finished time.Time
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := q.WaitDone(t.Context()); err != nil {
				t.Error(err)
			}
			finished = time.Now()
		})
		item := q.Take(upTo(1))[0]
		time.Sleep(time.Minute)
		q.Done(item.Key, nil)
		handedBack := time.Now()
		wg.Wait()
		if !finished.Equal(handedBack) {
			t.Errorf("done at %v, want when the retry succeeded at %v", finished, handedBack)
		}
	})
}

func TestShutDownRefusesAndHandsOutNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		q.Add(change, "file/a", "file/b")
		held := q.Take(upTo(1))
		q.ShutDown()
		if items := q.Take(upTo(5)); items != nil {
			t.Errorf("took %v after ShutDown", items)
		}
		if refused := q.Add(change, "file/c"); len(refused) != 1 {
			t.Errorf("refused %v after ShutDown, want file/c", refused)
		}
		q.Done(held[0].Key, errPassing)
	})
}

// A sync that was woken while a retry was coming, and failed too, is retried
// all the same.
func TestARetryThatWasOvertakenLeavesNoGap(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		q.Add(change, "file/a")
		takeOne(t, q, "file/a")
		q.Done("file/a", errPassing)
		takeOne(t, q, "file/a")
		q.Done("file/a", errPassing) // to be retried after some 2 s
		time.Sleep(time.Second)
		q.Add(change, "file/a")
		takeOne(t, q, "file/a")
		q.Done("file/a", errPassing) // … and now after some 4 s
		taken := make(chan []queue.Item)
		go func() { taken <- q.Take(upTo(10)) }()
		select {
		case items := <-taken:
			if len(items) != 1 || items[0].Trigger != "retry" {
				t.Errorf("took %v, want a retry", items)
			}
			q.Done("file/a", nil)
			assertEmpty(t, q, time.Hour)
		case <-time.After(time.Minute):
			t.Error("no retry within a minute")
			q.ShutDown()
			<-taken
		}
	})
}

// A key with a delay is handed out once that is over, whatever hints come, and
// holds up no other.
func TestDelay(t *testing.T) {
	delay := func(key targets.Key) time.Duration {
		if key == "late" {
			return 10 * time.Second
		}
		return 0
	}
	withConfig(t, queue.Config{Delay: delay}, func(t *testing.T, q *queue.Queue) {
		began := time.Now()
		q.Add(change, "late", "b")
		takeOne(t, q, "b")
		q.Done("b", nil)
		q.Add(change, "late")
		takeOne(t, q, "late")
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("it was handed out after %v", waited)
		}
		q.Done("late", nil)
	})
}

func TestCostlyKeysComeLastAndOneAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue.Queue) {
		take := func(want ...targets.Key) {
			t.Helper()
			if q.Len() == 0 {
				t.Fatalf("nothing waits, want %v", want)
			}
			var got []targets.Key
			for _, item := range q.Take(upTo(10)) {
				got = append(got, item.Key)
				q.Done(item.Key, nil)
			}
			if !slices.Equal(got, want) {
				t.Errorf("took %v, want %v", got, want)
			}
		}
		for _, key := range []targets.Key{"secret/a", "secret/b", "secret/c"} {
			q.Costly(key, true)
		}
		q.Add(change, "secret/a", "secret/b", "secret/c")
		take("secret/a")
		q.Add(change, "secret/d", "secret/e")
		take("secret/d", "secret/e", "secret/b")
		take("secret/c")
		q.Costly("secret/a", false)
		q.Add(change, "secret/b", "secret/a")
		take("secret/a", "secret/b")
	})
}
