package workers

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

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

// Drift corrects Secrets that others changed. It spaces the corrections if the changes
// recur. It does not delay the write of a new value.
type Drift struct {
	queue    queue.Enqueuer
	listener ContestListener
	metrics  *health.Metrics
	wake     wake.Wake

	mu       sync.Mutex
	contests map[targets.Key]*contest
	turns    turns.Turns[targets.Key] // pending corrections
}

// ContestListener is told why another client and Syncer keep changing a Secret.
type ContestListener interface {
	Contested(key targets.Key, why string)
}

// contest counts the consecutive corrections of a Secret.
type contest struct {
	count int
	pause time.Duration // 0 means no pause yet
	next  time.Time     // the earliest next correction
}

// NewDrift returns a Drift that corrects by hints to a queue.
func NewDrift(queue queue.Enqueuer, listener ContestListener, metrics *health.Metrics) *Drift {
	return &Drift{queue: queue, listener: listener, metrics: metrics, contests: map[targets.Key]*contest{}}
}

// Correct schedules the correction of a Secret, at once or after a pause.
func (d *Drift) Correct(key targets.Key) {
	if d.delays(key, time.Now()) {
		d.wake.Rouse()
		return
	}
	d.queue.Enqueue(queue.Hint{Trigger: "drift", Wakes: true}, key)
}

func (d *Drift) delays(key targets.Key, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.contests[key]
	if r == nil {
		return false
	}
	if now.Sub(r.next) > r.pause+peace {
		d.endLocked(key)
		return false
	}
	if r.pause == 0 || !r.next.After(now) {
		return false
	}
	d.turns.Put(key.Namespace(), key, r.next)
	return true
}

func (d *Drift) endLocked(key targets.Key) {
	if r := d.contests[key]; r != nil && r.pause > 0 {
		d.metrics.Contested(-1)
	}
	delete(d.contests, key)
}

// Forget drops a deleted Secret.
func (d *Drift) Forget(key targets.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endLocked(key)
}

// Settled counts the corrections, and schedules the next one.
func (d *Drift) Settled(o Outcome) {
	d.corrected(o)
	if len(o.Again) > 0 {
		d.Correct(o.Key)
	}
}

func (d *Drift) corrected(o Outcome) {
	if o.Item.Trigger != "drift" || !o.Wrote {
		return
	}
	pause := d.count(o.Key, time.Now())
	if pause == 0 {
		return
	}
	who := "another client, which the Secret does not name,"
	if rivals := o.After.Rivals; len(rivals) > 0 {
		who = "the field manager " + brief.List(rivals)
	}
	d.listener.Contested(o.Key, fmt.Sprintf("%s changes %s again and again, and so does Syncer; let only one of them write there (the next correction comes after a pause)", who, contestedParts(o)))
}

// contestedParts lists the data keys that a correction wrote or removed. Without any, only
// metadata differed.
func contestedParts(o Outcome) string {
	keys := slices.Concat(o.Set, o.Revoked, o.Dropped)
	if len(keys) == 0 {
		return "the metadata of the Secret"
	}
	slices.Sort(keys)
	return brief.List(slices.Compact(keys))
}

// count counts a correction, and returns the pause before the next one.
func (d *Drift) count(key targets.Key, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.contests[key]
	if r == nil {
		r = &contest{}
		d.contests[key] = r
	}
	switch r.count++; {
	case r.count < promptWrites:
	case r.pause == 0:
		r.pause = firstFight
		d.metrics.Contested(1)
	default:
		r.pause = min(2*r.pause, longestFight)
	}
	r.next = now.Add(r.pause)
	return r.pause
}

// Run makes the pending corrections until ctx ends.
func (d *Drift) Run(ctx context.Context) {
	defer d.end()
	d.wake.Loop(ctx, func() time.Duration {
		d.mu.Lock()
		key, wait, due := d.turns.Take(time.Now())
		d.mu.Unlock()
		if due {
			d.queue.Enqueue(queue.Hint{Trigger: "drift", Wakes: true}, key)
		}
		return wait
	})
}

func (d *Drift) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key := range d.contests {
		d.endLocked(key)
	}
}
