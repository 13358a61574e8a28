package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

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
		needless := r.Status.Bare && t.Secret == nil && t.Expanded == nil && t.Overrides == nil
		if errors.As(r.Status.Err, &suspect) && !needless {
			keys = append(keys, r.Spec.Key)
			if suspect.NotBefore.After(due) {
				due = suspect.NotBefore
			}
		}
	}
	return keys, due
}

// revocation ends the process after a removal, if the configuration says so.
type revocation struct {
	settings *settings
	always   bool // in a one-shot process
	once     sync.Once
	removed  chan struct{} // closed when a removal ends the process
}

// Settled implements SettledListener.
func (r *revocation) Settled(o workers.Outcome) {
	if o.Removed && (r.always || r.settings.config().ExitOnRevoked) {
		r.once.Do(func() { close(r.removed) })
	}
}

// err returns ErrRevoked if the process must end because of a removal.
func (r *revocation) err() error {
	select {
	case <-r.removed:
		return ErrRevoked
	default:
		return nil
	}
}
