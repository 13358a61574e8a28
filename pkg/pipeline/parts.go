package pipeline

import (
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/workers"
)

// newClient makes the lane's client of Conjur, and what knows its variables.
func (l *lane) newClient(cfg *config.Config) (err error) {
	o := l.reach
	o.Observer = l
	if l.client, err = connect.Conjur(l.identity.Conjur, o); err != nil {
		return err
	}
	l.values, err = variables.New(l.client, variables.Config{Rules: rules(cfg), Listener: l, Delivered: l.delivered, Users: l.users, Logger: l.Log})
	return err
}

// delivered reports whether a target that has one of the variables may hold
// anything, and whether that is known: each of them was synced once.
func (l *lane) delivered(ids []string) (may, known bool) {
	keys := l.targets.ByVariable(ids...)
	known = true
	for _, r := range l.targets.Records() {
		switch s := r.Status; {
		case !slices.Contains(keys, r.Spec.Key):
		case s.Err == nil && s.Proven.IsZero():
			known = false
		case !s.Bare:
			return true, true
		}
	}
	return false, known
}

// users says of each variable which namespaces have it, and whether any of their
// Secrets may hold something.
func (l *lane) users() map[string]variables.Use {
	uses := map[string]variables.Use{}
	for _, r := range l.targets.Records() {
		tenant, holds := "", !r.Status.Bare
		if r.Spec.Secret != nil {
			tenant = r.Spec.Secret.Namespace
		}
		for _, id := range slices.Concat(r.Spec.Variables(), r.Spec.Watched) {
			use := uses[id]
			if !slices.Contains(use.Tenants, tenant) {
				use.Tenants = append(use.Tenants, tenant)
			}
			use.Delivered = use.Delivered || holds
			uses[id] = use
		}
	}
	return uses
}

// rules are the settings about what is believed of the variables, and when.
func rules(cfg *config.Config) variables.Rules {
	return variables.Rules{
		Confirmations: cfg.Removal.Confirmations, ConfirmAfter: confirmAfter(cfg), Grace: cfg.Removal.Grace,
		Steady: steadyFor(cfg), Brake: brake(cfg.Removal), RequestBudget: requestBudget(cfg),
	}
}

// brake is what holds removals back; see variables.Brake.
func brake(r config.Removal) variables.Brake {
	return variables.Brake{Disabled: r.Brake == 0, Share: float64(r.Brake) / 100, Hold: r.BrakeHold}
}

// confirmAfter is the least time between two proofs that a variable is gone:
// such that the next poll, or the next retry where none is coming, counts.
func confirmAfter(cfg *config.Config) time.Duration {
	if cfg.Refresh.Enabled {
		return cfg.Refresh.Interval / 2
	}
	return cfg.Retry.Interval / 2
}

// steadyFor is how long an earlier value must be answered that is back so soon:
// a follower of Conjur that lags behind has caught up by then.
func steadyFor(cfg *config.Config) time.Duration {
	if !cfg.Refresh.Enabled {
		return 0
	}
	return max(3*cfg.Refresh.Interval, cfg.Removal.Grace)
}

// queueConfig says how failures are retried: for ever beside an application
// that runs, within the configured limit before one that waits.
func (l *lane) queueConfig(cfg *config.Config) queue.Config {
	limit := cfg.Retry.Limit
	if !cfg.Mode.OneShot() {
		limit = -1
	}
	var metrics workqueue.MetricsProvider
	if l.host != nil {
		metrics = l.host.metrics.Queues()
	}
	return queue.Config{
		Backoff:   backoffOf(cfg),
		Limit:     limit,
		Permanent: l.permanent,
		Delay:     l.renderings.Delay,
		Name:      l.name,
		Metrics:   metrics,
	}
}

// permanent reports whether no retry mends an error. A variable that is gone is
// one of them where the poll will see it come back.
func (l *lane) permanent(err error) bool {
	return workers.Permanent(err, l.config().Refresh.Enabled)
}
