package health

import (
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// Freshness knows when each target was last proven to hold what Conjur has:
// by a sync that ended well, or by a poll that found nothing new. Safe for use
// by several goroutines; make it with NewFreshness.
type Freshness struct {
	start time.Time

	mu      sync.Mutex
	polled  time.Time
	synced  map[targets.Key]time.Time // :: target → when a sync of it last ended well
	failing map[targets.Key]error     // :: target → why its last sync did not
}

// NewFreshness knows of no target yet. What was never fresh counts from now.
func NewFreshness() *Freshness {
	return &Freshness{start: time.Now(), synced: map[targets.Key]time.Time{}, failing: map[targets.Key]error{}}
}

// Polled notes that a poll has looked at every variable. What changed is not
// fresh any more: report its sync, which follows, by Settled.
func (f *Freshness) Polled() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.polled = time.Now()
}

// Settled notes the outcome of a sync.
func (f *Freshness) Settled(key targets.Key, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		if _, ok := f.synced[key]; ok {
			f.synced[key] = f.proven(key) // polls prove nothing from now on
		}
		f.failing[key] = err
		return
	}
	delete(f.failing, key)
	f.synced[key] = time.Now()
}

// Forget drops a target that is no longer kept in sync.
func (f *Freshness) Forget(key targets.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.synced, key)
	delete(f.failing, key)
}

// Ages tells for each of the keys how long ago it was proven fresh.
func (f *Freshness) Ages(keys []targets.Key) map[targets.Key]time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	ages := make(map[targets.Key]time.Duration, len(keys))
	for _, key := range keys {
		ages[key] = now.Sub(f.proven(key))
	}
	return ages
}

func (f *Freshness) proven(key targets.Key) time.Time {
	at, ok := f.synced[key]
	if !ok {
		return f.start
	}
	if f.failing[key] == nil && f.polled.After(at) {
		return f.polled
	}
	return at
}

// Missing lists those of the keys that were never fresh.
func (f *Freshness) Missing(keys []targets.Key) (missing []targets.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range keys {
		if _, ok := f.synced[key]; !ok {
			missing = append(missing, key)
		}
	}
	return missing
}

// Failure returns why the last sync of a target failed; nil when it did not, or
// when there was none.
func (f *Freshness) Failure(key targets.Key) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failing[key]
}

// EverPolled tells whether a poll has looked at every variable.
func (f *Freshness) EverPolled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.polled.IsZero()
}

// SincePoll is how long ago the last poll was that looked at every variable,
// or the beginning.
func (f *Freshness) SincePoll() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.polled.IsZero() {
		return time.Since(f.start)
	}
	return time.Since(f.polled)
}
