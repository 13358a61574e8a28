package pipeline

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// expiryLook is the time between checks for certificates that expire soon.
const expiryLook = time.Minute

// expiring warns of targets with a certificate that expires soon. It gives each notice
// once in the life of the pipeline.
type expiring struct {
	lanes     *lanes
	listeners *listeners
	log       *zap.Logger

	mu   sync.Mutex
	said map[targets.Key]notice
}

func newExpiring(lanes *lanes, listeners *listeners, log *zap.Logger) *expiring {
	return &expiring{lanes: lanes, listeners: listeners, log: log, said: map[targets.Key]notice{}}
}

// notice is the last notice about a target.
type notice struct {
	targets.Expiry
	within time.Duration // 0 means expired
}

// noticeOf returns the notice that is due for a target, or false if none is due yet.
func noticeOf(e targets.Expiry, now time.Time) (notice, bool) {
	const day = 24 * time.Hour
	for _, within := range [...]time.Duration{0, day, 7 * day, 30 * day} {
		if !e.At.IsZero() && !now.Before(e.At.Add(-within)) {
			return notice{e, within}, true
		}
	}
	return notice{}, false
}

func (n notice) String() string {
	verb := "expires"
	if n.within == 0 {
		verb = "expired"
	}
	return fmt.Sprintf("a certificate in variable %q %s at %s", n.Variable, verb, n.At.UTC().Format(time.RFC3339))
}

// Run checks until ctx ends.
func (e *expiring) Run(ctx context.Context) { every(ctx, expiryLook, e.look) }

// look checks all targets, and forgets the notices of deleted targets.
func (e *expiring) look() {
	e.mu.Lock()
	defer e.mu.Unlock()
	expiries := e.lanes.expiries()
	for key, expiry := range expiries {
		e.say(key, expiry)
	}
	maps.DeleteFunc(e.said, func(key targets.Key, _ notice) bool { return expiries[key].At.IsZero() })
}

// Settled implements SettledListener.
func (e *expiring) Settled(o workers.Outcome) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.say(o.Key, o.After.Expires)
}

// say gives the notice that is due. The caller holds the lock.
func (e *expiring) say(key targets.Key, expiry targets.Expiry) {
	due, ok := noticeOf(expiry, time.Now())
	if !ok || e.said[key] == due {
		return
	}
	e.said[key] = due
	e.log.Warn("Expiring", zap.String("target", string(key)), zap.Stringer("what", due))
	for _, l := range e.listeners.expires {
		l.Expires(key, due)
	}
}
