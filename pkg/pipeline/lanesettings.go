package pipeline

import (
	"slices"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/workers"
)

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
		case !s.Bare:
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
			uses[id][tenant] = uses[id][tenant] || !r.Status.Bare
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
		Delay:     l.renderings.Delay,
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
