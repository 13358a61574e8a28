// Package notify notifies applications of changes: once for all that belong
// together, and only after all of it was written.
package notify

import (
	"context"
	"sync"
	"time"

	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/targets"
)

// Patience is how long the first write of a round waits, at most, for the
// rest of the round.
const Patience = 5 * time.Second

// RetryEvery is the time between two calls of Announcer.Retry.
const RetryEvery = time.Second

// Rounds folds the writes that one trigger caused into one announcement. A
// round is the keys that a trigger enqueued together; it ends when a sync of
// each, begun after the trigger, has had its outcome. The zero Rounds is
// ready; Run must run for announcements to be made.
type Rounds struct {
	// Announcer, when not nil, is called from Run's goroutine.
	Announcer Announcer

	mu     sync.Mutex
	open   map[targets.Key][]*round // rounds that wait for a sync of the key to begin
	inSync map[targets.Key][]*round // rounds that wait for the sync under way
	due    time.Time                // when an announcement is due; zero: none
	made   int                      // announcements made so far
	ended  bool                     // a round has ended since Ended was called
	wake   wake.Wake
}

// Announcer makes the announcements of Rounds.
type Announcer interface {
	// Announce is called when a round that wrote something has ended, or
	// Patience after its first write.
	Announce(context.Context)
	// Ended is called, after Announce, when a round has ended, whether it wrote
	// or not.
	Ended(context.Context)
	// Retry does what these two could not do, and reports whether nothing is
	// left of it. It is called after them, and from then on every RetryEvery
	// until it is done.
	Retry(context.Context) (done bool)
}

// round is what is left of a trigger's keys.
type round struct {
	waiting map[targets.Key]bool
	wrote   bool // since the announcement numbered before
	before  int
}

// Begin opens a round for keys that are about to be enqueued.
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

// Drop takes keys out of the rounds in which they wait for a sync: the queue
// refused them.
func (r *Rounds) Drop(keys []targets.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		rounds := r.open[key]
		delete(r.open, key)
		r.settleLocked(key, rounds, false)
	}
}

// Started notes that a sync of the key has begun.
func (r *Rounds) Started(key targets.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rounds := r.open[key]; len(rounds) > 0 {
		r.inSync[key] = rounds
		delete(r.open, key)
	}
}

// Settled notes that the sync of the key has had its outcome: written or not,
// done, backing off or parked. A write that belongs to no round, such as a
// retry's, is a round of its own.
func (r *Rounds) Settled(key targets.Key, wrote bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rounds := r.inSync[key]
	delete(r.inSync, key)
	if len(rounds) == 0 {
		r.endedLocked(wrote)
	}
	r.settleLocked(key, rounds, wrote)
}

func (r *Rounds) settleLocked(key targets.Key, rounds []*round, wrote bool) {
	for _, rd := range rounds {
		delete(rd.waiting, key)
		if rd.before != r.made {
			rd.wrote, rd.before = false, r.made // what it wrote was announced
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

// dueLocked asks for an announcement at that time, if none is due earlier.
func (r *Rounds) dueLocked(at time.Time) {
	if !r.due.IsZero() && !at.Before(r.due) {
		return
	}
	r.due = at
	r.wake.Rouse()
}

// Run makes the announcements until ctx ends; then it makes those that are
// due, if any, and returns. End it after the workers.
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

// retry reports whether nothing is left to do.
func (r *Rounds) retry(ctx context.Context) (done bool) {
	return r.Announcer == nil || r.Announcer.Retry(ctx)
}

// announce makes the announcements that are due by then, and returns how long
// it is to the next. What is written while one is being made asks for another.
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
