// Package sources finds out why a target may be stale. Each source adds hints for keys.
// It may add too many hints, but never too few, and a hint never contains the change.
package sources

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

// Reporter is called with the state of a subject; a nil error means no error.
type Reporter interface {
	Report(subject string, err error)
}

// Remarker is a Reporter that is also called with limitations of a subject that works.
type Remarker interface {
	Reporter
	Remark(subject string, err error)
}

// The heart beats when a probe has taken the last beat. Events tell of that. Looks each
// beatEvery cover a folder without events. After an event they come each beatPollInterval, until
// one finds that a beat was taken without an event.
const (
	beatPollInterval = 10 * time.Second
	beatEvery        = time.Second
)

// jitter is the share by which a tick may be early, so that the processes of a fleet
// drift apart.
const jitter = 0.1

// Values returns the ids of the changed variables. With an error, the ids are still
// valid, but others may have changed too.
type Values interface {
	Changed(ctx context.Context, ids []string) ([]string, error)
}

// VariableUsers finds targets by the variables that they use. Polled records a poll that
// has read every variable.
type VariableUsers interface {
	Variables() []string
	ByVariable(ids ...string) []targets.Key
	Polled()
}

// Results returns the targets whose content somebody else has changed.
type Results interface {
	Altered() []targets.Key
}

// Lister finds out which variables exist, and returns the targets that change because of
// that.
type Lister interface {
	// Lists reports whether any target depends on the list.
	Lists() bool
	Relist(context.Context) ([]targets.Key, error)
}

// Heart shows that the process makes progress.
type Heart interface {
	// Beat gives a sign of life unless the last one is still there.
	Beat() (given bool, err error)
	// Stuck reports whether the workers make no progress. In that case the heart stops.
	Stuck() bool
}

// Poll watches Conjur and the results. At each tick it asks which variables and which
// targets have changed. All fields except Results and
// Lister are required.
type Poll struct {
	// Interval is the time between ticks. With 0, only the heart beats.
	Interval time.Duration
	// Intervals, if not nil, delivers new values of Interval.
	Intervals <-chan time.Duration
	// Deadline limits one poll.
	Deadline time.Duration
	Users    VariableUsers
	Values   Values
	// Results, if not nil, is called at each tick.
	Results Results
	// Lister, if not nil, is called at each tick. A slow list continues, and its result
	// is used at a later tick.
	Lister   Lister
	Queue    queue.Enqueuer
	Reporter Reporter
	// Heart beats while polls finish within their deadline and the workers make progress.
	Heart Heart
	// Taken, if not nil, receives after events where the heart gives its beats.
	Taken <-chan struct{}
}

// Run ticks until ctx ends, and returns after the current poll. The first tick is at a
// random moment within the first interval. A tick that is due during a poll waits for its
// end.
func (p *Poll) Run(ctx context.Context) {
	var polling sync.WaitGroup
	defer polling.Wait()
	var overrun atomic.Pointer[time.Time] // when the current poll will have exceeded its deadline; nil: none
	polling.Go(func() { p.tick(ctx, &overrun) })
	beat := time.NewTimer(0)
	defer beat.Stop()
	told, events := true, false // there was an event since the last beat; they arrive
	start := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.Taken:
			told, events = true, true
			beat.Reset(0)
		case <-beat.C:
			next := beatEvery
			if end := overrun.Load(); (end == nil || time.Now().Before(*end)) && !p.Heart.Stuck() {
				given, err := p.Heart.Beat()
				p.Reporter.Report("heartbeat", err)
				if given && !told {
					events = false
				}
				if err == nil {
					told = false
				}
				if err == nil && events {
					// The other parts that look each beatPollInterval also started now.
					// To wake the process costs more than to look.
					next = beatPollInterval - time.Since(start)%beatPollInterval
				}
			}
			beat.Reset(next)
		}
	}
}

// tick polls at each tick. It is a goroutine that lasts, because one for each poll would
// wake another thread, and grow another stack.
func (p *Poll) tick(ctx context.Context, overrun *atomic.Pointer[time.Time]) {
	list, interval := &listing{Poll: p}, p.Interval
	defer list.running.Wait()
	tick := time.NewTimer(time.Duration(rand.Float64() * float64(interval)))
	defer tick.Stop()
	if interval <= 0 {
		tick.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			end, due := now.Add(p.Deadline+overrunSlack), now.Add(next(interval))
			overrun.Store(&end)
			p.poll(ctx, list, interval)
			overrun.Store(nil)
			tick.Reset(time.Until(due))
		case d := <-p.Intervals:
			if d == interval {
				continue
			}
			tick.Stop()
			if interval = d; interval > 0 {
				tick.Reset(time.Duration(rand.Float64() * float64(interval)))
			}
		}
	}
}

// overrunSlack is the time beyond its deadline that a poll may need to notice it.
const overrunSlack = 5 * time.Second

// next returns the time from one tick to the next.
func next(interval time.Duration) time.Duration {
	return time.Duration(float64(interval) * (1 - jitter*rand.Float64()))
}

// poll checks results, list and variables, in this order, and adds hints after all
// checks. A sync that starts earlier could meet a rotation. It could then deliver, and
// announce, one of the rotation's targets before all others. For the same reason no
// target is in two of the hints: each hint is a separate round.
func (p *Poll) poll(ctx context.Context, list *listing, interval time.Duration) {
	var altered []targets.Key
	if p.Results != nil {
		altered = p.Results.Altered()
	}
	listed := list.awaitList(ctx, interval)
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.Deadline)
	defer cancel()
	ids, err := p.Values.Changed(ctx, p.Users.Variables())
	if ctx.Err() == context.Canceled {
		return // nothing is known
	}
	if err == nil {
		p.Users.Polled()
	}
	p.Reporter.Report("poll", err)
	changed := p.Users.ByVariable(ids...)
	p.Queue.Enqueue(queue.Hint{Trigger: "poll", Wakes: true}, changed...)
	listed = without(listed, changed)
	p.Queue.Enqueue(queue.Hint{Trigger: "list", Wakes: true}, listed...)
	p.Queue.Enqueue(queue.Hint{Trigger: "drift"}, without(without(altered, changed), listed)...)
}

// without returns the keys that are not in those.
func without(keys, those []targets.Key) []targets.Key {
	among := make(map[targets.Key]bool, len(those))
	for _, key := range those {
		among[key] = true
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key targets.Key) bool { return among[key] })
}
