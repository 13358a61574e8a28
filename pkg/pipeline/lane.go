package pipeline

import (
	"cmp"
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// lane contains one identity's parts, from triggers to writes: its targets, its client of
// Conjur, its queue and its workers. Lanes do not wait for each other.
type lane struct {
	*pipeline
	identity config.Identity
	name     string // in logs and metrics

	targets *records.Lane
	client  *conjur.Client
	values  *variables.Client
	listing *listing
	queue   *queue.Queue
	rounds  *notify.Rounds
	pool    *workers.Pool
	// intervals sends the poll a new interval. It buffers only the last one.
	intervals chan time.Duration

	halt func() // nil before start
}

// newLane makes a lane, which does nothing yet. The caller must stop it in every case.
func newLane(p *pipeline, cfg *config.Config, identity config.Identity) (*lane, error) {
	l := &lane{pipeline: p, identity: identity, name: cmp.Or(identity.Name, "default"), targets: p.set.Lane(identity.Name), intervals: make(chan time.Duration, 1)}
	if err := l.newClient(cfg); err != nil {
		return nil, err
	}
	l.listing = &listing{catalog: l.values.NewCatalog(), set: l.targets}
	l.rounds = &notify.Rounds{}
	if p.app != nil {
		l.rounds.Announcer = announcer{p}
	}
	l.queue = queue.New(l.queueConfig(cfg))
	l.pool = workers.NewPool(workers.PoolConfig{
		Work: l.queue,
		Syncer: &workers.Syncer{
			Targets:    l.targets,
			Values:     l.values,
			Templates:  p.texts,
			Sink:       p.sink,
			Policy:     policy(cfg),
			Lister:     l.listing,
			Renderings: p.renderings,
			Traces:     p.Traces,
			Log:        p.Log,
		},
		Workers:  p.Workers,
		Timeout:  3 * cfg.Conjur.HTTPTimeout,
		Grace:    p.Grace,
		Listener: l,
	})
	return l, nil
}

// start runs the lane until stop is called or ctx ends. Call it once.
func (l *lane) start(ctx context.Context) {
	intake, stop := context.WithCancel(ctx)
	announcing, announced := context.WithCancel(context.WithoutCancel(ctx))
	unmeasure := l.measure()
	var top, bottom sync.WaitGroup
	bottom.Go(func() { l.rounds.Run(announcing) })
	top.Go(func() { l.pool.Run(intake) })
	l.Enqueue(queue.Hint{Trigger: "start", Wakes: true}, l.targets.Keys()...)
	if !l.config().Mode.OneShot() {
		poll := l.poll()
		top.Go(func() { poll.Run(intake) })
	}
	l.halt = sync.OnceFunc(func() {
		stop()
		top.Wait()
		announced()
		bottom.Wait()
		l.client.Close()
		unmeasure()
	})
}

// stop stops the started parts, from the top to the bottom, and waits for them. Without a
// start it frees the lane's resources.
func (l *lane) stop() {
	if l.halt != nil {
		l.halt()
		return
	}
	l.queue.ShutDown()
	l.client.Close()
}

// measure adds the lane to the metrics. The returned function removes it.
func (l *lane) measure() (end func()) {
	if l.host == nil {
		return func() {}
	}
	l.host.metrics.Held(l.name, 0, false)
	return l.host.metrics.Watch(l.name, l.targets)
}

// Enqueue adds hints to the queue, as one round.
func (l *lane) Enqueue(h queue.Hint, keys ...targets.Key) {
	for _, key := range keys {
		if delay := l.renderings.Delay(key); delay > 0 {
			l.Log.Warn("A process died while it rendered this target; it comes after the others", zap.String("target", string(key)), zap.Duration("after", delay))
		}
	}
	l.rounds.Begin(keys)
	l.rounds.Drop(l.queue.Add(h, keys...))
}

// forget drops the pending work of a deleted target.
func (l *lane) forget(key targets.Key) {
	l.queue.Forget(key)
	l.rounds.Drop([]targets.Key{key})
}

// Started implements workers.Listener.
func (l *lane) Started(item queue.Item) { l.rounds.Started(item.Key) }

// Settled implements workers.Listener. Every outcome passes through it.
func (l *lane) Settled(item queue.Item, r workers.Result) {
	for _, listener := range l.settled {
		listener.Settled(Outcome{r, l.name, item})
	}
	l.rounds.Settled(r.Key, r.Wrote && !r.Restored)
	if l.secrets != nil && len(r.Again) > 0 {
		l.secrets.fights.drifted(r.Key)
	} else {
		l.take(queue.Hint{Trigger: "drift", Wakes: true}, r.Again)
	}
	if r.Removed && exits(l.config()) {
		l.once.Do(func() { close(l.revoked) })
	}
}

// Asked implements conjur.Observer.
func (l *lane) Asked(e conjur.Exchange) {
	for _, listener := range l.asked {
		listener.Asked(l.name, e)
	}
}

// Held implements variables.Listener.
func (l *lane) Held(e variables.HoldEvent) {
	for _, listener := range l.held {
		listener.Held(Hold{e, l.name, l.targets.ByVariable(e.Variables...)})
	}
}

// Report records the result of a poll, or of listing the variables.
func (l *lane) Report(subject string, err error) {
	if subject == "poll" && err == nil {
		l.targets.Polled()
	}
	if l.identity.Name != "" {
		subject += " as " + l.identity.Name
	}
	l.troubles.Report(subject, err)
}

// poll is the lane's watch on Conjur.
func (l *lane) poll() *sources.Poll {
	return &sources.Poll{
		Interval:  l.config().Refresh.Interval,
		Intervals: l.intervals,
		Deadline:  2 * l.config().Conjur.HTTPTimeout,
		Users:     l.targets,
		Values:    l.values,
		Results:   l,
		Lister:    l.listing,
		Queue:     l,
		Reporter:  l,
		Heart:     l,
	}
}

// Altered returns the targets that changed since the last write. A watch reports this for
// Secrets.
func (l *lane) Altered() []targets.Key {
	if l.files == nil {
		return nil
	}
	return l.files.Altered(l.targets.Records())
}

// Beat shows readers of the status folder that the process makes progress.
func (l *lane) Beat() error {
	if l.status == nil {
		return nil
	}
	return l.status.Beat()
}

// Stuck reports whether the workers overrun their deadlines.
func (l *lane) Stuck() bool { return l.pool.Overdue() }
