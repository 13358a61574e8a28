package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

// lastRounds bounds how often lastSync goes round: once to find out, and as
// often as proof takes, with one to spare.
const lastRounds = 4

// lastSync brings targets up to date, for a process that ends. What seems to be
// gone gets the time that proof takes: else a value that was revoked at that
// moment would stay in its file for as long as nobody starts the process again.
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
		proof := time.NewTimer(max(confirmAfter(l.config()), time.Until(due)))
		select {
		case <-proof.C:
		case <-ctx.Done():
			proof.Stop()
			return
		}
	}
}

// lastRetries waits until a one-shot process has delivered or given up every
// target. Where it may try again at all, what seems to be gone then is not given
// up before it could have been proven.
func (l *lane) lastRetries(ctx context.Context) {
	if l.queue.WaitDone(ctx) != nil || l.config().Retry.Limit == 0 {
		return
	}
	if keys, _ := l.suspects(); len(keys) > 0 {
		l.lastSync(ctx, keys)
	}
}

// suspects lists the targets of which a variable seems to be gone without
// being proven to be, and when all of these may be. Proof changes nothing for a
// file that is not there and has no other variable to fall back to.
func (l *lane) suspects() (keys []targets.Key, due time.Time) {
	for _, r := range l.targets.Records() {
		var suspect *variables.SuspectError
		t := r.Spec
		settled := r.Status.Bare && t.Secret == nil && t.Expanded == nil && t.Overrides == nil
		if errors.As(r.Status.Err, &suspect) && !settled {
			keys = append(keys, r.Spec.Key)
			if suspect.NotBefore.After(due) {
				due = suspect.NotBefore
			}
		}
	}
	return keys, due
}

// exits reports whether a process ends because of a removal.
func exits(cfg *config.Config) bool {
	return cfg.Mode != config.ModeStandalone && (cfg.ExitOnRevoked || cfg.Mode.OneShot())
}

// mustExit reports whether the process has to end because of a removal.
func (p *pipeline) mustExit() bool {
	select {
	case <-p.revoked:
		return true
	default:
		return false
	}
}
