package notify

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/targets"
)

// expiryInterval is the time between checks for certificates that expire soon.
const expiryInterval = time.Minute

// Expiring warns of targets with a certificate that expires soon. It gives each notice
// once in its life.
type Expiring struct {
	expiries func() map[targets.Key]targets.Expiry // of all targets
	listener ExpiryListener                        // may be nil
	log      *zap.Logger

	mu   sync.Mutex
	said map[targets.Key]notice
}

// ExpiryListener is called with each notice of a certificate that expires soon.
type ExpiryListener interface {
	Expires(target targets.Key, notice string)
}

// NewExpiring returns an Expiring that checks the results of expiries. listener may be nil.
func NewExpiring(expiries func() map[targets.Key]targets.Expiry, listener ExpiryListener, log *zap.Logger) *Expiring {
	return &Expiring{expiries: expiries, listener: listener, log: log, said: map[targets.Key]notice{}}
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

// Run checks all targets until ctx ends.
func (e *Expiring) Run(ctx context.Context) { wake.Every(ctx, expiryInterval, e.checkAll) }

// checkAll checks all targets, and forgets the notices of deleted targets.
func (e *Expiring) checkAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	expiries := e.expiries()
	for key, expiry := range expiries {
		e.giveLocked(key, expiry)
	}
	maps.DeleteFunc(e.said, func(key targets.Key, _ notice) bool { return expiries[key].At.IsZero() })
}

// Check checks one target, which was synced.
func (e *Expiring) Check(key targets.Key, expiry targets.Expiry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.giveLocked(key, expiry)
}

// giveLocked gives the notice that is due.
func (e *Expiring) giveLocked(key targets.Key, expiry targets.Expiry) {
	due, ok := noticeOf(expiry, time.Now())
	if !ok || e.said[key] == due {
		return
	}
	e.said[key] = due
	e.log.Warn("Expiring", zap.String("target", string(key)), zap.Stringer("what", due))
	if e.listener != nil {
		e.listener.Expires(key, due.String())
	}
}
