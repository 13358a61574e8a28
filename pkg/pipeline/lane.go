package pipeline

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/authn/inject"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/variables"
	"github.com/secretsync/syncer/pkg/workers"
)

// lane is one identity's way from triggers to what is written: its targets,
// its client of Conjur, its queue and its workers. No lane waits for another.
type lane struct {
	laneParts

	targets *targets.Set
	client  *conjur.Client
	values  *variables.Client
	listing *listing
	queue   *queue.Queue
	rounds  *notify.Rounds
	pool    *workers.Pool
	fresh   *health.Freshness

	halt    func()        // nil before start
	revoked chan struct{} // closed when something was removed
	once    sync.Once
}

// laneParts is what a lane is given. What may be nil says so.
type laneParts struct {
	cfg      *config.Config
	identity config.Identity
	workers  int
	grace    time.Duration
	version  string
	log      *zap.Logger

	inbox      *inject.Inbox // of the process
	sink       workers.Sink
	templates  workers.Templates
	deliveries *workers.Deliveries // may be nil
	renderings *notify.Renderings  // may be nil
	// altered finds the targets that are not as they were left, at each poll.
	altered func(*lane) []targets.Key
	// writing hears of each write that is about to begin, settled of each
	// outcome, announce and ended of rounds, observe of each request to
	// Conjur, held of removals that are held back.
	writing         func(targets.Key) // may be nil
	settled         func(*lane, queue.Item, workers.Result)
	announce, ended func(context.Context)
	retry           func(context.Context) (done bool) // what these two could not do
	observe         func(conjur.Exchange)             // may be nil
	held            func(*lane, variables.HoldEvent)
	queues          workqueue.MetricsProvider // may be nil
	// report is told how it goes, beat that all moves.
	report sources.Report
	beat   func() error
}

// newLane makes a lane without targets, which does nothing yet. It must be
// stopped, whatever comes.
func newLane(parts laneParts) (*lane, error) {
	l := &lane{laneParts: parts, targets: &targets.Set{}, fresh: health.NewFreshness(), revoked: make(chan struct{})}
	if err := l.newClient(); err != nil {
		return nil, err
	}
	l.listing = &listing{catalog: l.values.NewCatalog(), set: l.targets}
	l.rounds = &notify.Rounds{Announce: l.announce, Ended: l.ended, Retry: l.retry}
	l.queue = queue.New(l.queueConfig())
	l.pool = workers.NewPool(workers.PoolConfig{
		Work: l.queue,
		Syncer: &workers.Syncer{
			Targets:    l.targets,
			Values:     l.values,
			Templates:  l.templates,
			Sink:       l.sink,
			Policy:     workers.Policy{RemoveRevoked: l.cfg.RemoveDeleted, KeepDeleted: !l.cfg.RestoreDeletedFiles},
			List:       l.listing.first,
			Rendering:  l.renderings.Begin,
			Writing:    l.writing,
			Deliveries: l.deliveries,
			Log:        l.log,
		},
		Workers: l.workers,
		Timeout: 3 * l.cfg.Conjur.HTTPTimeout,
		Grace:   l.grace,
		Started: func(item queue.Item) { l.rounds.Started(item.Key) },
		Settled: l.settle,
	})
	return l, nil
}

// start has the lane work until stop is called, or ctx ends. Call it once.
func (l *lane) start(ctx context.Context) {
	intake, stop := context.WithCancel(ctx)
	telling, hush := context.WithCancel(context.WithoutCancel(ctx))
	var middle, bottom sync.WaitGroup
	bottom.Go(func() { l.rounds.Run(telling) })
	middle.Go(func() { l.pool.Run(intake) })
	l.enqueue(queue.Hint{Trigger: "start", Wakes: true}, l.targets.Keys()...)
	l.halt = func() {
		stop()
		middle.Wait()
		hush()
		bottom.Wait()
		l.client.Close()
	}
}

// stop ends what start began, from the top to the bottom, and waits for it;
// without a start it frees what the lane holds.
func (l *lane) stop() {
	if l.halt != nil {
		l.halt()
		return
	}
	l.queue.ShutDown()
	l.client.Close()
}

// enqueue is how a source hands hints to the queue: as one round.
func (l *lane) enqueue(h queue.Hint, keys ...targets.Key) {
	for _, key := range keys {
		if delay := l.renderings.Delay(key); delay > 0 {
			l.log.Warn("A process died while it rendered this target; it comes after the others", zap.String("target", string(key)), zap.Duration("after", delay))
		}
	}
	l.rounds.Begin(keys)
	l.rounds.Drop(l.queue.Add(h, keys...))
}

// settle spreads the news of an outcome.
func (l *lane) settle(item queue.Item, r workers.Result) {
	l.fresh.Settled(r.Key, r.Err)
	l.settled(l, item, r)
	l.rounds.Settled(r.Key, r.Wrote && !r.Restored)
	if !errors.Is(r.Err, context.Canceled) { // else the process was told to stop
		l.report(string(r.Key), r.Err)
	}
	if r.Removed {
		l.once.Do(func() { close(l.revoked) })
	}
}

// polled is how a poll ended.
func (l *lane) polled(subject string, err error) {
	if subject == "poll" && err == nil {
		l.fresh.Polled()
	}
	if l.identity.Name != "" {
		subject += " as " + l.identity.Name
	}
	l.report(subject, err)
}

// poll is the lane's watch on Conjur.
func (l *lane) poll() *sources.Poll {
	poll := &sources.Poll{
		Interval:   l.cfg.Refresh.Interval,
		Deadline:   2 * l.cfg.Conjur.HTTPTimeout,
		Variables:  l.targets.Variables,
		List:       l.listing.poll,
		Values:     l.values,
		ByVariable: l.targets.ByVariable,
		Altered:    func() []targets.Key { return l.altered(l) },
		Enqueue:    l.enqueue,
		Report:     l.polled,
		Beat:       l.beat,
		Stuck:      l.pool.Overdue,
	}
	return poll
}

// identityName is an identity's name in logs and metrics.
func identityName(identity config.Identity) string { return cmp.Or(identity.Name, "default") }
