package pipeline

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// lane contains one identity's parts, from triggers to writes: its targets, its client of
// Conjur, its queue and its workers. Lanes do not wait for each other.
type lane struct {
	identity   config.Identity
	name       string // in logs and metrics
	settings   *settings
	listeners  *listeners
	renderings *notify.Renderings // nil: nothing is remembered
	app        *application
	troubles   *health.Troubles
	metrics    *health.Metrics
	log        *zap.Logger

	targets *records.Lane
	client  *conjur.Client
	values  *variables.Client
	lister  *workers.WildcardLister
	queue   *queue.Queue
	rounds  *notify.Rounds
	pool    *workers.Pool
	sources []source // the poll of Conjur; none in a one-shot process
	// intervals sends the poll a new interval. It buffers only the last one.
	intervals chan time.Duration

	halt func() // nil before start
}

// start runs the lane until stop is called or ctx ends. Call it once.
func (l *lane) start(ctx context.Context) {
	intake, stop := context.WithCancel(ctx)
	announcing, announced := context.WithCancel(context.WithoutCancel(ctx))
	l.metrics.Held(l.name, 0, false)
	unmeasure := l.metrics.Watch(l.name, l.targets)
	var top, bottom sync.WaitGroup
	bottom.Go(func() { l.rounds.Run(announcing) })
	top.Go(func() { l.pool.Run(intake) })
	l.Enqueue(queue.Hint{Trigger: "start", Wakes: true}, l.targets.Keys()...)
	for _, s := range l.sources {
		top.Go(func() { s.Run(intake) })
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

// Enqueue adds hints to the queue, as one round.
func (l *lane) Enqueue(h queue.Hint, keys ...targets.Key) {
	for _, key := range keys {
		if delay := l.renderings.Delay(key); delay > 0 {
			l.log.Warn("A process died while it rendered this target; the target is rendered after the others", zap.String("target", string(key)), zap.Duration("after", delay))
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
func (l *lane) Settled(o workers.Outcome) {
	for _, listener := range l.listeners.settled {
		listener.Settled(o)
	}
	l.rounds.Settled(o.Key, o.Wrote && !o.Restored)
}

// Asked implements conjur.Observer.
func (l *lane) Asked(e conjur.Exchange) {
	for _, listener := range l.listeners.asked {
		listener.Asked(l.name, e)
	}
}

// Held implements variables.Listener.
func (l *lane) Held(e variables.HoldEvent) {
	for _, listener := range l.listeners.held {
		listener.Held(Hold{e, l.name, l.targets.ByVariable(e.Variables...)})
	}
}

// Report records the result of a poll, or of listing the variables.
func (l *lane) Report(subject string, err error) {
	if l.identity.Name != "" {
		subject += " as " + l.identity.Name
	}
	l.troubles.Report(subject, err)
}

// Beat shows readers of the status folder that the process makes progress.
func (l *lane) Beat() error { return l.app.beat() }

// Stuck reports whether the workers overrun their deadlines.
func (l *lane) Stuck() bool { return l.pool.Overdue() }
