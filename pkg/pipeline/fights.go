package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/turns"
	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

const (
	// promptWrites is how many consecutive changes of a Secret by others Syncer corrects
	// at once. Then it pauses for firstFight. Each further pause is twice as long, up to
	// longestFight.
	promptWrites = 3
	firstFight   = time.Second
	longestFight = 5 * time.Minute
	// peace is how long after the last pause the Secret must stay unchanged for the fight
	// to end.
	peace = time.Minute
)

// fights corrects Secrets that others changed. It spaces the corrections if the changes
// recur. It does not delay the write of a new value.
type fights struct {
	lanes   *lanes
	events  *events
	metrics *health.Metrics
	wake    wake.Wake

	mu     sync.Mutex
	rounds map[targets.Key]*rounds
	turns  turns.Turns[targets.Key] // pending corrections
}

// rounds counts the consecutive corrections of a Secret.
type rounds struct {
	count int
	pause time.Duration // 0 means no pause yet
	next  time.Time     // the earliest next correction
}

func newFights(lanes *lanes, events *events, metrics *health.Metrics) *fights {
	return &fights{lanes: lanes, events: events, metrics: metrics, rounds: map[targets.Key]*rounds{}}
}

// drifted schedules the correction of a Secret, at once or after a pause.
func (f *fights) drifted(key targets.Key) {
	if f.delays(key, time.Now()) {
		f.wake.Rouse()
		return
	}
	f.lanes.Enqueue(queue.Hint{Trigger: "drift", Wakes: true}, key)
}

func (f *fights) delays(key targets.Key, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.rounds[key]
	if r == nil {
		return false
	}
	if now.Sub(r.next) > r.pause+peace {
		f.endLocked(key)
		return false
	}
	if r.pause == 0 || !r.next.After(now) {
		return false
	}
	f.turns.Put(key.Namespace(), key, r.next)
	return true
}

func (f *fights) endLocked(key targets.Key) {
	if r := f.rounds[key]; r != nil && r.pause > 0 {
		f.metrics.Contested(-1)
	}
	delete(f.rounds, key)
}

// forget drops a deleted Secret.
func (f *fights) forget(key targets.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endLocked(key)
}

// Settled counts the corrections, and schedules the next one.
func (f *fights) Settled(o Outcome) {
	f.corrected(o)
	if len(o.Again) > 0 {
		f.drifted(o.Key)
	}
}

func (f *fights) corrected(o Outcome) {
	if o.Item.Trigger != "drift" || !o.Wrote {
		return
	}
	pause := f.count(o.Key, time.Now())
	if pause == 0 {
		return
	}
	who := "another client, which the Secret does not name,"
	if rivals := o.After.Rivals; len(rivals) > 0 {
		who = "the field manager " + brief.List(rivals)
	}
	f.events.event(o.Key, corev1.EventTypeWarning, reasonContested,
		fmt.Sprintf("%s changes %s again and again, and so does Syncer; let only one of them write there (the next correction comes after a pause)", who, contested(o)))
}

// contested lists the data keys that a correction wrote or removed. Without any, only
// metadata differed.
func contested(o Outcome) string {
	keys := slices.Concat(o.Set, o.Revoked, o.Dropped)
	if len(keys) == 0 {
		return "the metadata of the Secret"
	}
	slices.Sort(keys)
	return brief.List(slices.Compact(keys))
}

// count counts a correction, and returns the pause before the next one.
func (f *fights) count(key targets.Key, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.rounds[key]
	if r == nil {
		r = &rounds{}
		f.rounds[key] = r
	}
	switch r.count++; {
	case r.count < promptWrites:
	case r.pause == 0:
		r.pause = firstFight
		f.metrics.Contested(1)
	default:
		r.pause = min(2*r.pause, longestFight)
	}
	r.next = now.Add(r.pause)
	return r.pause
}

// Run makes the pending corrections until ctx ends.
func (f *fights) Run(ctx context.Context) {
	defer f.end()
	f.wake.Loop(ctx, func() time.Duration {
		f.mu.Lock()
		key, wait, due := f.turns.Take(time.Now())
		f.mu.Unlock()
		if due {
			f.lanes.Enqueue(queue.Hint{Trigger: "drift", Wakes: true}, key)
		}
		return wait
	})
}

func (f *fights) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.rounds {
		f.endLocked(key)
	}
}
