package sources_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/test/kubetest"
)

var cluster *kubetest.ControlPlane

func TestMain(m *testing.M) { goleak.VerifyTestMain(kubetest.Own(m, &cluster)) }

// conjur is a Values whose polls take a while and whose variables change when
// told.
type conjur struct {
	takes time.Duration
	stuck bool // polls do not even end at their deadline

	mu       sync.Mutex
	began    []time.Time
	parallel int
	most     int
	changed  []string
	err      error
}

func (c *conjur) Changed(ctx context.Context, ids []string) ([]string, error) {
	c.mu.Lock()
	c.began = append(c.began, time.Now())
	c.parallel++
	c.most = max(c.most, c.parallel)
	changed, err := c.changed, c.err
	c.mu.Unlock()
	defer func() { c.mu.Lock(); c.parallel--; c.mu.Unlock() }()
	if c.stuck {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-time.After(c.takes):
		return changed, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// starts tells when polls began.
func (c *conjur) starts() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.began)
}

// hints collects what a source enqueues, and steers it.
type hints struct {
	taken     chan struct{}
	intervals chan time.Duration // brings the source another one

	mu   sync.Mutex
	list []hint
}

type hint struct {
	queue.Hint
	keys []targets.Key
}

func (h *hints) enqueue(q queue.Hint, keys ...targets.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(keys) > 0 {
		h.list = append(h.list, hint{q, keys})
	}
}

func (h *hints) take() []hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.list
	h.list = nil
	return list
}

// heart counts its beats. Each is taken at once, without an event.
type heart struct {
	beats *atomic.Int32
	stuck bool
}

func (h heart) Beat() (bool, error) { h.beats.Add(1); return true, nil }
func (h heart) Stuck() bool         { return h.stuck }

// altered is the targets that are not as they were left.
type altered []targets.Key

func (a altered) Altered() []targets.Key { return a }

// listFunc is called for each list.
type listFunc func(context.Context) ([]targets.Key, error)

func (listFunc) Lists() bool { return true }

func (f listFunc) Relist(ctx context.Context) ([]targets.Key, error) { return f(ctx) }

// polling runs a poll of the given interval in virtual time until f returns.
func polling(t *testing.T, c *conjur, p sources.Poll, f func(h *hints, beats, errs *atomic.Int32)) {
	synctest.Test(t, func(t *testing.T) {
		h := hints{intervals: make(chan time.Duration), taken: make(chan struct{}, 1)}
		p.Intervals, p.Taken = h.intervals, h.taken
		var beats, errs atomic.Int32
		var set records.Lane
		set.Replace([]*targets.Target{
			{Key: "file/a", Entries: []targets.Entry{{Alias: "x", Variable: "x"}}},
			{Key: "file/b", Entries: []targets.Entry{{Alias: "x", Variable: "x"}, {Alias: "y", Variable: "y"}}},
		})
		p.Users, p.Values, p.Queue = &set, c, enqueueFunc(h.enqueue)
		p.Reporter = reportFunc(func(subject string, err error) {
			if (subject == "poll" || subject == "list") && err != nil {
				errs.Add(1)
			}
		})
		if _, ok := p.Heart.(*probed); !ok {
			heart, _ := p.Heart.(heart)
			heart.beats = &beats
			p.Heart = heart
		}
		if p.Results == nil {
			p.Results = altered(nil)
		}
		if p.Deadline == 0 {
			p.Deadline = time.Minute
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { p.Run(ctx) })
		defer wg.Wait()
		defer cancel()
		f(&h, &beats, &errs)
	})
}

func TestTicksComeEachIntervalOrALittleEarlier(t *testing.T) {
	c := &conjur{takes: time.Millisecond}
	begin := time.Time{}
	polling(t, c, sources.Poll{Interval: 10 * time.Second}, func(h *hints, _, _ *atomic.Int32) {
		begin = time.Now()
		time.Sleep(1000 * time.Second)
	})
	if first := c.began[0].Sub(begin); first > 10*time.Second {
		t.Errorf("the first tick came after %v, want within the first interval", first)
	}
	var early int
	for i := 1; i < len(c.began); i++ {
		gap := c.began[i].Sub(c.began[i-1])
		if gap > 10*time.Second || gap < 9*time.Second {
			t.Errorf("tick %d came after %v, want 9s to 10s", i, gap)
		}
		if gap < 9900*time.Millisecond {
			early++
		}
	}
	if early == 0 {
		t.Error("no tick came early: a fleet that started together would call together for ever")
	}
}

func TestProcessesOfAFleetStartAtDifferentPhases(t *testing.T) {
	phases := map[time.Duration]bool{}
	for range 10 {
		c := &conjur{}
		polling(t, c, sources.Poll{Interval: time.Hour}, func(*hints, *atomic.Int32, *atomic.Int32) {
			begin := time.Now()
			time.Sleep(time.Hour)
			synctest.Wait()
			phases[c.began[0].Sub(begin)] = true
		})
	}
	if len(phases) < 9 {
		t.Errorf("10 processes share %d phases", len(phases))
	}
}

func TestASlowPollDelaysTheNextAndNeverOverlaps(t *testing.T) {
	c := &conjur{takes: 3 * time.Second}
	polling(t, c, sources.Poll{Interval: time.Second}, func(*hints, *atomic.Int32, *atomic.Int32) {
		time.Sleep(301 * time.Second)
	})
	if c.most != 1 {
		t.Errorf("%d polls went on at once", c.most)
	}
	if n := len(c.began); n < 99 || n > 102 {
		t.Errorf("%d polls of 3s in 301s, want one after the other", n)
	}
}

// TestAnotherIntervalCountsFromThen, also where it comes while a poll goes on.
func TestAnotherIntervalCountsFromThen(t *testing.T) {
	c := &conjur{takes: time.Minute}
	polling(t, c, sources.Poll{Interval: time.Minute, Deadline: 2 * time.Minute}, func(h *hints, _, _ *atomic.Int32) {
		time.Sleep(time.Minute + time.Second) // the first poll goes on
		h.intervals <- 10 * time.Minute
		time.Sleep(40 * time.Minute)
		h.intervals <- 0
		time.Sleep(time.Hour)
	})
	if n := len(c.began); n < 4 || n > 6 {
		t.Errorf("%d polls, want one, and those of 40 minutes", n)
	}
}

func TestAChangedVariableHintsAtItsTargetsOnly(t *testing.T) {
	c := &conjur{}
	polling(t, c, sources.Poll{Interval: time.Second}, func(h *hints, _, errs *atomic.Int32) {
		time.Sleep(2 * time.Second)
		if got := h.take(); got != nil {
			t.Fatalf("hints without a change: %v", got)
		}
		c.mu.Lock()
		c.changed, c.err = []string{"y"}, errors.New("another chunk failed") // names are valid all the same
		c.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		got := h.take()
		if len(got) == 0 || !got[0].Wakes || got[0].Trigger != "poll" || !slices.Equal(got[0].keys, []targets.Key{"file/b"}) {
			t.Errorf("hints %v, want a waking one at file/b", got)
		}
		if errs.Load() == 0 {
			t.Error("the error of the poll was not reported")
		}
	})
}

func TestANewListHintsAtTheTargetsThatDiffer(t *testing.T) {
	var lists atomic.Int32
	var differ atomic.Bool
	p := sources.Poll{Interval: time.Second, Lister: listFunc(func(context.Context) ([]targets.Key, error) {
		lists.Add(1)
		if differ.Swap(false) {
			return []targets.Key{"file/b"}, nil
		}
		return nil, nil
	})}
	c := &conjur{}
	polling(t, c, p, func(h *hints, _, _ *atomic.Int32) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := h.take(); got != nil {
			t.Fatalf("hints without a change: %v", got)
		}
		if n := lists.Load(); int(n) != len(c.began) || n < 9 {
			t.Errorf("%d lists for %d polls, want one each", n, len(c.began))
		}
		differ.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		got := h.take()
		if len(got) != 1 || !got[0].Wakes || got[0].Trigger != "list" || !slices.Equal(got[0].keys, []targets.Key{"file/b"}) {
			t.Errorf("hints %v, want a waking one at file/b", got)
		}
	})
}

// Without a list the poll goes on with the variables that are known.
func TestAListThatFailsDoesNotStopThePoll(t *testing.T) {
	c := &conjur{changed: []string{"y"}}
	p := sources.Poll{Interval: time.Second, Lister: listFunc(func(context.Context) ([]targets.Key, error) { return nil, errors.New("down") })}
	polling(t, c, p, func(h *hints, _, errs *atomic.Int32) {
		time.Sleep(time.Second)
		synctest.Wait()
		if got := h.take(); len(got) == 0 || got[0].Trigger != "poll" {
			t.Errorf("hints %v, want those of the poll", got)
		}
		if errs.Load() == 0 {
			t.Error("the error of the list was not reported")
		}
	})
}

// A server that lists slowly, or without end, delays no rotation; what it lists
// in the end is not lost.
func TestASlowListDelaysNoRotation(t *testing.T) {
	var lists atomic.Int32
	p := sources.Poll{Interval: 10 * time.Second, Lister: listFunc(func(ctx context.Context) ([]targets.Key, error) {
		lists.Add(1)
		select {
		case <-time.After(34 * time.Second):
			return []targets.Key{"file/all"}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})}
	c := &conjur{changed: []string{"b/pass"}}
	polling(t, c, p, func(h *hints, _, _ *atomic.Int32) {
		time.Sleep(30 * time.Second)
		if n := len(c.starts()); n < 2 {
			t.Errorf("%d polls for values within 30 s, want one for nearly each interval", n)
		}
		time.Sleep(30 * time.Second)
		all := func(q hint) bool { return slices.Contains(q.keys, "file/all") }
		if n := lists.Load(); n > 2 || !slices.ContainsFunc(h.take(), all) {
			t.Errorf("%d looks at the list, want at most 2 within a minute, and the hint of the first", n)
		}
	})
}

func TestAlteredTargetsAreHintedAtWithoutWaking(t *testing.T) {
	c := &conjur{err: errors.New("down")} // also when Conjur does not answer
	p := sources.Poll{Interval: time.Second, Results: altered{"file/a"}}
	polling(t, c, p, func(h *hints, _, _ *atomic.Int32) {
		time.Sleep(time.Second)
		synctest.Wait()
		got := h.take()
		if len(got) == 0 || got[0].Wakes || got[0].Trigger != "drift" || !slices.Equal(got[0].keys, []targets.Key{"file/a"}) {
			t.Errorf("hints %v, want one at file/a that does not wake", got)
		}
	})
}

// A sync that begins before the poll has looked would deliver one target of a
// rotation before all others.
func TestOneTickHintsAtEachTargetOnceAndOnlyAfterThePoll(t *testing.T) {
	c := &conjur{takes: 500 * time.Millisecond, changed: []string{"y"}} // of file/b
	p := sources.Poll{
		Interval: time.Hour,
		Results:  altered{"file/a", "file/b", "file/d"},
		Lister:   listFunc(func(context.Context) ([]targets.Key, error) { return []targets.Key{"file/b", "file/c", "file/d"}, nil }),
	}
	polling(t, c, p, func(h *hints, _, _ *atomic.Int32) {
		for len(c.starts()) == 0 {
			time.Sleep(time.Second / 10)
			synctest.Wait()
		}
		if got := h.take(); got != nil {
			t.Errorf("hints %v while the poll goes on", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		want := []hint{
			{queue.Hint{Trigger: "poll", Wakes: true}, []targets.Key{"file/b"}},
			{queue.Hint{Trigger: "list", Wakes: true}, []targets.Key{"file/c", "file/d"}},
			{queue.Hint{Trigger: "drift"}, []targets.Key{"file/a"}},
		}
		if got := h.take(); !reflect.DeepEqual(got, want) {
			t.Errorf("hints %v, want %v", got, want)
		}
	})
}

func TestTheHeartBeats(t *testing.T) {
	for name, test := range map[string]struct {
		conjur *conjur
		poll   sources.Poll
		want   int32 // beats in 100 s
	}{
		"with refresh off":                 {&conjur{}, sources.Poll{}, 100},
		"while all is well":                {&conjur{}, sources.Poll{Interval: time.Second}, 100},
		"while the server is a black hole": {&conjur{takes: time.Hour}, sources.Poll{Interval: time.Second, Deadline: 10 * time.Second}, 100},
		"not when a poll overruns":         {&conjur{takes: time.Hour, stuck: true}, sources.Poll{Interval: time.Second, Deadline: 10 * time.Second}, 15},
		"not when the workers overrun":     {&conjur{}, sources.Poll{Interval: time.Second, Heart: heart{stuck: true}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			polling(t, test.conjur, test.poll, func(_ *hints, beats, _ *atomic.Int32) {
				time.Sleep(100 * time.Second)
				if n := beats.Load(); n < test.want-1 || n > test.want+1 {
					t.Errorf("%d beats in 100s, want %d", n, test.want)
				}
			})
		})
	}
}

// probed is a heart whose beats a probe takes.
type probed struct {
	mu    sync.Mutex
	there bool
	looks int
}

func (p *probed) Stuck() bool { return false }

func (p *probed) Beat() (given bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	given, p.there = !p.there, true
	p.looks++
	return given, nil
}

func (p *probed) take() (taken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken, p.there = p.there, false
	return taken
}

func TestTheHeartBeatsAfterEventsAndWhereThereAreNone(t *testing.T) {
	const probes, period = 100, 25 * time.Second
	for name, test := range map[string]struct {
		told  func(probe int) bool // an event tells of it
		looks int
		late  int // probes that find no beat after two seconds
	}{
		"events":             {func(int) bool { return true }, 22 + 7*probes/2, 0},
		"no events":          {func(int) bool { return false }, 25 * probes, 0},
		"events that end":    {func(n int) bool { return n < 50 }, 7*50/2 + 25*50, 1},
		"one event is lost":  {func(n int) bool { return n != 50 }, 22 + 7*probes/2 + 16, 1},
		"no event, then all": {func(n int) bool { return n >= 50 }, 25*50 + 22 + 7*50/2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			heart := &probed{}
			polling(t, &conjur{}, sources.Poll{Heart: heart}, func(h *hints, _, _ *atomic.Int32) {
				late := 0
				for n := range probes {
					time.Sleep(period - 2*time.Second)
					if !heart.take() {
						t.Errorf("probe %d found no beat", n)
					}
					if test.told(n) {
						h.taken <- struct{}{}
					}
					time.Sleep(2 * time.Second)
					heart.mu.Lock()
					if !heart.there {
						late++
					}
					heart.mu.Unlock()
				}
				heart.mu.Lock()
				defer heart.mu.Unlock()
				if late != test.late || heart.looks < test.looks*98/100 || heart.looks > test.looks*102/100 {
					t.Errorf("%d looks, want about %d; %d late beats, want %d", heart.looks, test.looks, late, test.late)
				}
			})
		})
	}
}

// The parts that look now and then start together, so that one wakeup serves all.
func TestTheHeartLooksAtRoundTimesSinceTheStart(t *testing.T) {
	heart := &probed{}
	looks := func() int {
		heart.mu.Lock()
		defer heart.mu.Unlock()
		return heart.looks
	}
	polling(t, &conjur{}, sources.Poll{Heart: heart}, func(h *hints, _, _ *atomic.Int32) {
		time.Sleep(3 * time.Second)
		h.taken <- struct{}{}
		for range 3 {
			time.Sleep(10*time.Second - time.Duration(time.Now().UnixNano())%(10*time.Second) - time.Millisecond)
			before := looks()
			time.Sleep(2 * time.Millisecond)
			if n := looks() - before; n != 1 {
				t.Errorf("%d looks at a round time, want 1", n)
			}
		}
	})
}
