package main

import (
	"context"
	"errors"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

// lastRounds bounds how often lastSync goes round: once to find out, and as
// often as proof takes, with one to spare.
const lastRounds = 4

// lastSync brings every target up to date, for a process that ends because of
// a removal. What seems to be gone too gets the time that proof takes: else a
// value that was revoked at the same moment would stay in its file for as long
// as nobody starts the process again.
func (l *lane) lastSync(ctx context.Context) {
	keys := l.targets.Keys()
	for range lastRounds {
		l.enqueue(queue.Hint{Trigger: "removal", Wakes: true}, keys...)
		if l.queue.WaitSettled(ctx) != nil {
			return
		}
		if keys = l.suspects(); len(keys) == 0 {
			return
		}
		proof := time.NewTimer(confirmAfter(l.cfg))
		select {
		case <-proof.C:
		case <-ctx.Done():
			proof.Stop()
			return
		}
	}
}

// suspects lists the targets of which a variable seems to be gone without
// being proven to be.
func (l *lane) suspects() (keys []targets.Key) {
	for key, err := range l.queue.Errors() {
		var suspect *conjur.SuspectError
		if errors.As(err, &suspect) {
			keys = append(keys, key)
		}
	}
	return keys
}

// exitOnRevoked is closed when the process has to end because of a removal.
func (l *lane) exitOnRevoked() <-chan struct{} {
	if l.cfg.Mode == config.ModeStandalone || !l.cfg.ExitOnRevoked && !l.cfg.Mode.OneShot() {
		return nil
	}
	return l.revoked
}

// mustExit tells whether exitOnRevoked is closed.
func (l *lane) mustExit() bool {
	select {
	case <-l.exitOnRevoked():
		return true
	default:
		return false
	}
}
