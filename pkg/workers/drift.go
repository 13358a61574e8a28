package workers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/internal/fairqueue"
	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

const (
	// correctionGap is the least time between two corrections of a Secret (decision 066).
	correctionGap = time.Second
	// contestedFrom is the number of corrections from which a Secret is contested.
	contestedFrom = 3
	// peace is how long a Secret must need no correction for its contest to end.
	peace = time.Hour
)

// Drift corrects Secrets that others changed, each at most once a second. It does not delay
// the write of a new value.
type Drift struct {
	queue    queue.Enqueuer
	listener ContestListener
	metrics  *health.Metrics
	wake     wake.Wake

	mu       sync.Mutex
	contests map[targets.Key]*contest
	turns    fairqueue.Delayed[targets.Key] // when to correct next, or when the contest ends
}

// ContestListener is told that another client changed a Secret and Syncer corrected it, and
// why. again means that this recurs. Peace is told that it recurs no longer.
type ContestListener interface {
	Contested(key targets.Key, why string, again bool)
	Peace(key targets.Key)
}

// contest counts the corrections of a Secret.
type contest struct {
	count int
	last  time.Time // the last correction
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
	if r == nil || now.Sub(r.last) >= correctionGap {
		return false
	}
	d.turns.Put(key.Namespace(), key, r.last.Add(correctionGap))
	return true
}

// Forget drops a deleted Secret.
func (d *Drift) Forget(key targets.Key) {
	d.mu.Lock()
	r := d.contests[key]
	delete(d.contests, key)
	d.mu.Unlock()
	if r != nil && r.count >= contestedFrom {
		d.metrics.Contested(-1)
		d.listener.Peace(key)
	}
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
	who := "another client, which the Secret does not name,"
	if rivals := o.After.Rivals; len(rivals) > 0 {
		who = "the field manager " + brief.List(rivals)
	}
	if d.count(o.Key, time.Now()) < contestedFrom {
		d.listener.Contested(o.Key, fmt.Sprintf("%s changed %s, and Syncer corrected it; if a manifest sets it, remove it there", who, contestedParts(o)), false)
		return
	}
	d.listener.Contested(o.Key, fmt.Sprintf("%s changes %s again and again, and so does Syncer; let only one of them write there: if a manifest sets it, remove it there", who, contestedParts(o)), true)
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

// count counts a correction, and returns how many there were without an hour of peace.
func (d *Drift) count(key targets.Key, now time.Time) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.contests[key]
	if r == nil {
		r = &contest{}
		d.contests[key] = r
	}
	if r.count++; r.count == contestedFrom {
		d.metrics.Contested(1)
	}
	r.last = now
	d.turns.Put(key.Namespace(), key, now.Add(peace))
	return r.count
}

// Run makes the delayed corrections, and ends contests, until ctx ends.
func (d *Drift) Run(ctx context.Context) {
	defer d.end()
	d.wake.Loop(ctx, func() time.Duration {
		key, wait := d.due(time.Now())
		if key != "" {
			d.queue.Enqueue(queue.Hint{Trigger: "drift", Wakes: true}, key)
		}
		return wait
	})
}

// due returns a Secret to correct now, or "", and the time until there may be another one. It
// ends a contest whose time has come.
func (d *Drift) due(now time.Time) (key targets.Key, wait time.Duration) {
	key, peaceful, wait := d.takeTurn(now)
	if peaceful {
		d.Forget(key)
		return "", wait
	}
	return key, wait
}

// takeTurn returns the Secret whose turn has come, if any, and whether it needed no correction
// for an hour.
func (d *Drift) takeTurn(now time.Time) (key targets.Key, peaceful bool, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key, wait, due := d.turns.Take(now)
	r := d.contests[key]
	switch {
	case !due || r == nil: // forgotten
		return "", false, wait
	case now.Sub(r.last) >= peace:
		return key, true, wait
	}
	d.turns.Put(key.Namespace(), key, r.last.Add(peace))
	return key, false, wait
}

func (d *Drift) end() {
	d.mu.Lock()
	keys := slices.Collect(maps.Keys(d.contests))
	d.mu.Unlock()
	for _, key := range keys {
		d.Forget(key)
	}
}
