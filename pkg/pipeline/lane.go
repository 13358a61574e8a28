package pipeline

import (
	"context"
	"errors"
	"slices"
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
	identity      config.Identity
	name          string // in logs and metrics
	settings      *settings
	listeners     *listeners
	renderCrashes *notify.RenderCrashes // nil: nothing is remembered
	app           *application
	troubles      *health.Troubles
	metrics       *health.Metrics
	log           *zap.Logger

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
		if delay := l.renderCrashes.Delay(key); delay > 0 {
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
func (l *lane) Beat() (given bool, err error) { return l.app.beat() }

// Stuck reports whether the workers overrun their deadlines.
func (l *lane) Stuck() bool { return l.pool.Overdue() }

// delivered reports whether a target with one of the variables may contain any data.
// known is true if every such target was synced once.
func (l *lane) delivered(ids []string) (may, known bool) {
	keys := l.targets.ByVariable(ids...)
	known = true
	for _, r := range l.targets.Records() {
		switch s := r.Status; {
		case !slices.Contains(keys, r.Spec.Key):
		case s.Err == nil && s.Proven.IsZero():
			known = false
		case !s.TargetEmpty:
			return true, true
		}
	}
	return false, known
}

// users returns for each variable the namespaces that use it, and whether a Secret of
// theirs with it may contain data.
func (l *lane) users() map[string]variables.Use {
	uses := map[string]variables.Use{}
	for _, r := range l.targets.Records() {
		tenant := r.Spec.Key.Namespace()
		for _, id := range slices.Concat(r.Spec.Variables(), r.Spec.Watched) {
			if uses[id] == nil {
				uses[id] = variables.Use{}
			}
			uses[id][tenant] = uses[id][tenant] || !r.Status.TargetEmpty
		}
	}
	return uses
}

// rules returns the settings for when to believe an answer about a variable.
func rules(cfg *config.Config) variables.Rules {
	return variables.Rules{
		Confirmations: cfg.Removal.Confirmations, ConfirmAfter: confirmAfter(cfg), Grace: cfg.Removal.Grace,
		Steady: steadyFor(cfg), Brake: brake(cfg.Removal), Once: cfg.Mode.OneShot(),
	}
}

// brake returns the limit on removals; see variables.Brake.
func brake(r config.Removal) variables.Brake {
	return variables.Brake{Disabled: r.Brake == 0, Share: float64(r.Brake) / 100, Hold: r.BrakeHold}
}

// confirmAfter is the least time between two proofs that a variable is gone. It is short
// enough for the next poll to count, or the next retry if there is no poll.
func confirmAfter(cfg *config.Config) time.Duration {
	if cfg.Refresh.Enabled {
		return cfg.Refresh.Interval / 2
	}
	return cfg.Retry.Interval / 2
}

// steadyFor is how long Conjur must answer an earlier value that returns soon. By then a
// Conjur follower that lags behind has caught up.
func steadyFor(cfg *config.Config) time.Duration {
	if !cfg.Refresh.Enabled {
		return 0
	}
	return max(3*cfg.Refresh.Interval, cfg.Removal.Grace)
}

// queueConfig returns how to retry failures. Next to a running application the queue
// retries forever. If the application waits, it retries up to the configured limit.
func (l *lane) queueConfig(cfg *config.Config) queue.Config {
	limit := cfg.Retry.Limit
	if !cfg.Mode.OneShot() {
		limit = -1
	}
	return queue.Config{
		Backoff:   backoffOf(cfg),
		Limit:     limit,
		Permanent: l.permanent,
		Delay:     l.renderCrashes.Delay,
		Name:      l.name,
		Metrics:   l.metrics.Queues(),
	}
}

// permanent reports whether retries cannot solve an error. A deleted variable counts, or
// one that was not found for some time, if the poll will detect its return.
func (l *lane) permanent(err error) bool {
	polls := l.settings.config().Refresh.Enabled
	return workers.Permanent(err, polls) || polls && workers.AwaitsPoll(err)
}

// lastRounds bounds the rounds of lastSync: one to detect, those that proof needs, and
// one to spare.
const lastRounds = 4

// lastSync updates targets before the process ends. It waits long enough to prove that a
// missing variable is gone. Otherwise a value that was revoked at that moment would stay
// in its file until the next start.
func (l *lane) lastSync(ctx context.Context, keys []targets.Key) {
	for range lastRounds {
		l.Enqueue(queue.Hint{Trigger: "removal", Wakes: true}, keys...)
		if l.queue.WaitSettled(ctx) != nil {
			return
		}
		var due time.Time
		if keys, due = l.suspects(); len(keys) == 0 {
			return
		}
		proof := time.NewTimer(max(confirmAfter(l.settings.config()), time.Until(due)))
		select {
		case <-proof.C:
		case <-ctx.Done():
			proof.Stop()
			return
		}
	}
}

// lastRetries waits until a one-shot process has delivered or given up every target. If
// retries are enabled, it does not give up a missing variable before proof was possible.
func (l *lane) lastRetries(ctx context.Context) {
	if l.queue.WaitDone(ctx) != nil || l.settings.config().Retry.Limit == 0 {
		return
	}
	if keys, _ := l.suspects(); len(keys) > 0 {
		l.lastSync(ctx, keys)
	}
}

// suspects lists the targets with a variable that seems gone without proof. due is the
// earliest time at which all can be proven. It omits a target whose file does not exist
// and which has no variable to fall back to: proof changes nothing for it.
func (l *lane) suspects() (keys []targets.Key, due time.Time) {
	for _, r := range l.targets.Records() {
		var suspect *variables.SuspectError
		t := r.Spec
		needless := r.Status.TargetEmpty && t.Secret == nil && t.Expanded == nil && t.Overrides == nil
		if errors.As(r.Status.Err, &suspect) && !needless {
			keys = append(keys, r.Spec.Key)
			if suspect.NotBefore.After(due) {
				due = suspect.NotBefore
			}
		}
	}
	return keys, due
}
