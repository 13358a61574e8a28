// Package sources says why a target may be stale. Each source hints at keys;
// it may say too much, never too little, and never what changed.
package sources

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

// Enqueuer takes hints to the queue.
type Enqueuer interface {
	Enqueue(h queue.Hint, keys ...targets.Key)
}

// Reporter is called with how it went with a subject; a nil error means well.
type Reporter interface {
	Report(subject string, err error)
}

// Remarker is a Reporter that is also called with what keeps a subject from
// going as well as it could.
type Remarker interface {
	Reporter
	Remark(subject string, err error)
}

// beatEvery is how often the heart beats.
const beatEvery = time.Second

// jitter is the share by which a tick may come early, so that the processes
// of a fleet drift apart.
const jitter = 0.1

// Values returns the ids of the variables that changed. Beside an error the
// ids are still valid, but others may have changed too.
type Values interface {
	Changed(ctx context.Context, ids []string) ([]string, error)
}

// VariableUsers is the targets by the variables that they mention.
type VariableUsers interface {
	Variables() []string
	ByVariable(ids ...string) []targets.Key
}

// Results returns the targets that are not as they were left.
type Results interface {
	Altered() []targets.Key
}

// Lister finds out which variables there are, and returns the targets that
// differ for it.
type Lister interface {
	Relist(context.Context) ([]targets.Key, error)
}

// Heart shows that the process moves.
type Heart interface {
	Beat() error
	// Stuck reports whether the workers do not move; then the heart rests.
	Stuck() bool
}

// Poll is the watch on Conjur and on the results: at each tick it asks which
// variables changed and which targets are not as they were left. All fields
// but Lister are needed.
type Poll struct {
	// Interval is the time between ticks; 0 for none: then only the heart
	// beats.
	Interval time.Duration
	// Intervals, when not nil, brings another Interval.
	Intervals <-chan time.Duration
	// Deadline bounds one poll.
	Deadline time.Duration
	Users    VariableUsers
	Values   Values
	Results  Results
	// Lister, when not nil, is called at each tick. A list that takes long goes
	// on, and counts at a later tick.
	Lister   Lister
	Queue    Enqueuer
	Reporter Reporter
	// Heart beats every beatEvery while polls end within their deadline and the
	// workers move.
	Heart Heart
}

// Run ticks until ctx ends, and returns when the poll under way has. The first
// tick comes at a random moment of the first interval. A tick that is due
// while a poll goes on waits for its end.
func (p *Poll) Run(ctx context.Context) {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	tick := time.NewTimer(time.Duration(rand.Float64() * float64(p.Interval)))
	defer tick.Stop()
	if p.Interval <= 0 {
		tick.Stop()
	}

	list, interval := &lookout{Poll: p}, p.Interval
	defer list.running.Wait()
	var polling sync.WaitGroup
	defer polling.Wait()
	var ended chan struct{} // of the poll under way; nil: none
	var overrun time.Time   // when that poll will have overrun its deadline
	var due time.Time       // when the next tick is

	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			if (ended == nil || time.Now().Before(overrun)) && !p.Heart.Stuck() {
				p.Reporter.Report("heartbeat", p.Heart.Beat())
			}
		case now := <-tick.C:
			done, each := make(chan struct{}), interval // another one may come while the poll goes on
			ended, overrun, due = done, now.Add(p.Deadline+overrunSlack), now.Add(next(each))
			polling.Go(func() {
				defer close(done)
				p.poll(ctx, list, each)
			})
		case <-ended:
			if ended = nil; interval > 0 {
				tick.Reset(time.Until(due))
			}
		case d := <-p.Intervals:
			if d == interval {
				continue
			}
			tick.Stop()
			interval, due = d, time.Now().Add(time.Duration(rand.Float64()*float64(d)))
			if ended == nil && interval > 0 {
				tick.Reset(time.Until(due))
			}
		}
	}
}

// overrunSlack is what a poll may take beyond its deadline to notice it.
const overrunSlack = 5 * time.Second

// next is the time from one tick to the next.
func next(interval time.Duration) time.Duration {
	return time.Duration(float64(interval) * (1 - jitter*rand.Float64()))
}

// poll looks at results, list and variables, in this order, and hints when all
// have been looked at: a sync that began earlier could meet a rotation and
// deliver one target of it, and tell, before all others. For the same reason no
// target is in two of the hints: each is a round of its own.
func (p *Poll) poll(ctx context.Context, list *lookout, interval time.Duration) {
	altered := p.Results.Altered()
	listed := list.look(ctx, interval)
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.Deadline)
	defer cancel()
	ids, err := p.Values.Changed(ctx, p.Users.Variables())
	if ctx.Err() == context.Canceled {
		return // nothing is known
	}
	p.Reporter.Report("poll", err)
	changed := p.Users.ByVariable(ids...)
	p.Queue.Enqueue(queue.Hint{Trigger: "poll", Wakes: true}, changed...)
	listed = without(listed, changed)
	p.Queue.Enqueue(queue.Hint{Trigger: "list", Wakes: true}, listed...)
	p.Queue.Enqueue(queue.Hint{Trigger: "drift"}, without(without(altered, changed), listed)...)
}

// without returns the keys that are not among those.
func without(keys, those []targets.Key) []targets.Key {
	among := make(map[targets.Key]bool, len(those))
	for _, key := range those {
		among[key] = true
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key targets.Key) bool { return among[key] })
}
