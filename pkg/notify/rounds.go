// Package notify notifies applications of changes: once for all changes that belong
// together, and only after all of them were written.
package notify

import (
	"context"
	"sync"
	"time"

	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/targets"
)

// Patience is the maximum time that the first write of a round waits for the rest of the
// round.
const Patience = 5 * time.Second

// RetryEvery is the time between two calls of Announcer.Retry.
const RetryEvery = time.Second

// Rounds folds the writes that one trigger caused into one announcement. A round is the
// keys that a trigger enqueued together. It ends when each key has the outcome of a sync
// that started after the trigger. The zero Rounds is ready to use. Announcements require
// that Run is running.
type Rounds struct {
	// Announcer, if not nil, is called from Run's goroutine.
	Announcer Announcer

	mu     sync.Mutex
	open   map[targets.Key][]*round // rounds that wait for a sync of the key to start
	inSync map[targets.Key][]*round // rounds that wait for the current sync
	due    time.Time                // when an announcement is due; zero: none
	made   int                      // announcements made so far
	ended  bool                     // a round has ended since the last call of Ended
	wake   wake.Wake
}

// Announcer makes the announcements of Rounds.
type Announcer interface {
	// Announce is called when a round that wrote something has ended, or Patience after
	// its first write.
	Announce(context.Context)
	// Ended is called, after Announce, when a round has ended, even if it wrote nothing.
	Ended(context.Context)
	// Retry repeats the failed work of the other two methods and reports whether all of
	// it is done. It is called after them, and then every RetryEvery until it is done.
	Retry(context.Context) (done bool)
}

// round is the remaining keys of a trigger.
type round struct {
	waiting map[targets.Key]bool
	wrote   bool // since the announcement with the number before
	before  int
}

// Begin starts a round for keys that are about to be enqueued.
func (r *Rounds) Begin(keys []targets.Key) {
	if len(keys) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open, r.inSync = map[targets.Key][]*round{}, map[targets.Key][]*round{}
	}
	began := &round{waiting: make(map[targets.Key]bool, len(keys))}
	for _, key := range keys {
		if !began.waiting[key] {
			began.waiting[key] = true
			r.open[key] = append(r.open[key], began)
		}
	}
}

// Drop removes keys from the rounds in which they wait for a sync, because the queue
// refused them.
func (r *Rounds) Drop(keys []targets.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		rounds := r.open[key]
		delete(r.open, key)
		r.outcomeLocked(key, rounds, false)
	}
}

// Started records that a sync of the key has started.
func (r *Rounds) Started(key targets.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rounds := r.open[key]; len(rounds) > 0 {
		r.inSync[key] = rounds
		delete(r.open, key)
	}
}

// Settled records the outcome of the key's sync: written or not, done, backing off or
// parked. A write that belongs to no round, such as the write of a retry, forms a
// separate round.
func (r *Rounds) Settled(key targets.Key, wrote bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rounds := r.inSync[key]
	delete(r.inSync, key)
	if len(rounds) == 0 {
		r.endedLocked(wrote)
	}
	r.outcomeLocked(key, rounds, wrote)
}

func (r *Rounds) outcomeLocked(key targets.Key, rounds []*round, wrote bool) {
	for _, rd := range rounds {
		delete(rd.waiting, key)
		if rd.before != r.made {
			rd.wrote, rd.before = false, r.made // its writes were announced
		}
		rd.wrote = rd.wrote || wrote
		switch {
		case len(rd.waiting) == 0:
			r.endedLocked(rd.wrote)
		case wrote:
			r.dueLocked(time.Now().Add(Patience))
		}
	}
}

func (r *Rounds) endedLocked(wrote bool) {
	r.ended = true
	if wrote {
		r.dueLocked(time.Now())
	}
	r.wake.Rouse()
}

// dueLocked schedules an announcement at that time, unless one is due earlier.
func (r *Rounds) dueLocked(at time.Time) {
	if !r.due.IsZero() && !at.Before(r.due) {
		return
	}
	r.due = at
	r.wake.Rouse()
}

// Run makes the announcements until ctx ends. Then it makes the announcements that are
// due and returns. Stop the workers before Run.
func (r *Rounds) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.wake.C():
		case <-timer.C:
		case <-ctx.Done():
			ctx = context.WithoutCancel(ctx)
			_, _ = r.announce(ctx, time.Now().Add(Patience))
			r.retry(ctx)
			return
		}
		wait, any := r.announce(ctx, time.Now())
		if !r.retry(ctx) && (!any || wait > RetryEvery) {
			wait, any = RetryEvery, true
		}
		if any {
			timer.Reset(wait)
		}
	}
}

// retry reports whether all work is done.
func (r *Rounds) retry(ctx context.Context) (done bool) {
	return r.Announcer == nil || r.Announcer.Retry(ctx)
}

// announce makes the announcements that are due by the given time, and returns the time
// until the next one. Writes during an announcement cause another one.
func (r *Rounds) announce(ctx context.Context, by time.Time) (wait time.Duration, any bool) {
	r.mu.Lock()
	due, ended := !r.due.IsZero() && !r.due.After(by), r.ended
	if due {
		r.due = time.Time{}
		r.made++
	}
	r.ended = false
	r.mu.Unlock()
	if due && r.Announcer != nil {
		r.Announcer.Announce(ctx)
	}
	if ended && r.Announcer != nil {
		r.Announcer.Ended(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Until(r.due), !r.due.IsZero()
}
