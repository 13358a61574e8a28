// Package queue decides what needs work, and when. It folds any number of
// hints for a key into one entry, never hands a key to two workers, and keeps
// what failed until its time has come.
package queue

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/targets"
)

// Hint says that a key may be stale, and who says so.
type Hint struct {
	// Trigger names the source of the hint, for logs; never what changed.
	Trigger string
	// Wakes is set when an input of the key changed. Such a hint also reaches
	// a key that is backing off or parked; a mere tick does not.
	Wakes bool
}

// Item is a key that a worker took.
type Item struct {
	Key targets.Key
	// Trigger is that of the first of the hints that the item folds, or
	// "retry".
	Trigger string
	// Since is when that first hint came, or when the retry was due.
	Since time.Time
}

// Config is how a queue treats failure.
type Config struct {
	// Backoff spaces the retries of a key.
	Backoff retry.Backoff
	// Limit is the number of retries before a key is given up: 0 for none,
	// negative for no limit.
	Limit int
	// Permanent reports whether no retry will mend an error; such keys are
	// parked until an input of theirs changes. Nil: there are none.
	Permanent func(error) bool
	// Delay is how long after New a key is first handed out; nil: at once.
	Delay func(targets.Key) time.Duration
	// Name and Metrics have the queue measure itself; nil: it does not.
	Name    string
	Metrics workqueue.MetricsProvider
}

// Queue is a rate-limited work queue of target keys over client-go's. All
// methods may be called from any goroutine. New starts a goroutine, which
// ShutDown stops.
type Queue struct {
	config  Config
	limiter *limiter
	work    workqueue.TypedDelayingInterface[targets.Key]
	order   *order // of work
	began   time.Time
	taking  chan struct{} // held by the one worker that waits in Take

	mu      sync.Mutex
	closed  bool
	keys    map[targets.Key]*state // those that are not done and well
	changed chan struct{}          // closed and replaced whenever the state of a key changes
}

// state is what is known of one key. A key is settled when it is neither
// hinted nor working.
type state struct {
	hinted  bool // somebody asked for a sync that has not begun
	wakes   bool // … because of a changed input
	working bool
	// forgotten: what comes of the work is of no concern.
	forgotten bool
	trigger   string
	since     time.Time
	err       error     // of the last sync
	retryAt   time.Time // zero: no retry is coming
}

// New makes a queue and starts its timekeeping goroutine.
func New(c Config) *Queue {
	order := newOrder()
	q := &Queue{
		config: c,
		order:  order,
		began:  time.Now(),
		work: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[targets.Key]{
			Name: c.Name, MetricsProvider: c.Metrics,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[targets.Key]{Name: c.Name, MetricsProvider: c.Metrics, Queue: order}),
		}),
		limiter: newLimiter(c.Backoff),
		taking:  make(chan struct{}, 1),
		keys:    map[targets.Key]*state{},
		changed: make(chan struct{}),
	}
	if q.config.Permanent == nil {
		q.config.Permanent = func(error) bool { return false }
	}
	if q.config.Delay == nil {
		q.config.Delay = func(targets.Key) time.Duration { return 0 }
	}
	return q
}

func (s *state) retryDue() bool {
	return !s.retryAt.IsZero() && !time.Now().Before(s.retryAt)
}

// Add hints at keys. It returns those that it did not take: the keys that are
// backing off or parked, if the hint does not wake, and all keys after
// ShutDown.
func (q *Queue) Add(h Hint, keys ...targets.Key) (refused []targets.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		s := q.keys[key]
		if s == nil {
			s = &state{}
			q.keys[key] = s
		}
		if q.closed || s.err != nil && !s.working && !s.hinted && !h.Wakes {
			refused = append(refused, key)
			continue
		}
		if !s.hinted {
			s.hinted, s.trigger, s.since = true, h.Trigger, time.Now()
		}
		s.wakes = s.wakes || h.Wakes
		q.work.Add(key)
	}
	return refused
}

// Take waits for work and returns as many keys as share, called with
// the number that wait, says; a costly key is the last. It returns none after ShutDown, whatever is
// queued. Each key must be given back with Done.
func (q *Queue) Take(share func(waiting int) int) []Item {
	q.taking <- struct{}{} // only one waits, so a second Get below never blocks
	defer func() { <-q.taking }()

	var items []Item
	most := 0 // known when the first is there: before that, nothing may wait yet
	for len(items) == 0 || len(items) < most && q.work.Len() > 0 {
		key, shutdown := q.work.Get()
		if shutdown {
			break
		}
		item, due := q.begin(key)
		if !due {
			q.work.Done(key)
			continue
		}
		items = append(items, item)
		if q.order.isCostly(key) {
			break // so that what comes meanwhile is before the next one
		}
		if most == 0 {
			most = share(1 + q.work.Len())
		}
	}
	return items
}

// begin marks the key as being worked on, unless it only woke from a delay
// that a later sync has made pointless, or the queue was shut down.
func (q *Queue) begin(key targets.Key) (Item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.keys[key]
	if s == nil || q.closed {
		return Item{}, false
	}
	if wait := q.config.Delay(key) - time.Since(q.began); wait > 0 {
		q.work.AddAfter(key, wait)
		return Item{}, false
	}
	if !s.hinted && !s.retryDue() {
		if !s.retryAt.IsZero() {
			// The work queue keeps one delay for a key, the shorter one, so
			// that of the retry to come was dropped for this one.
			q.work.AddAfter(key, time.Until(s.retryAt))
		}
		return Item{}, false
	}
	item := Item{Key: key, Trigger: s.trigger, Since: s.since}
	if !s.hinted {
		item.Trigger, item.Since = "retry", s.retryAt
	}
	s.hinted, s.wakes, s.working, s.retryAt = false, false, true, time.Time{}
	q.announceLocked()
	return item, true
}

// Done takes a key back with the outcome of its sync. It is the only place
// that forgets, retries or parks.
func (q *Queue) Done(key targets.Key, err error) {
	q.mu.Lock()
	s := q.keys[key]
	if s.forgotten {
		s.forgotten, err = false, nil
	}
	s.working, s.err = false, err
	switch {
	case err == nil || q.config.Permanent(err):
		q.limiter.Forget(key)
	case q.config.Limit < 0 || q.limiter.NumRequeues(key) < q.config.Limit:
		delay := q.limiter.When(key)
		s.retryAt = time.Now().Add(delay)
		q.work.AddAfter(key, delay)
	}
	if err != nil && !s.wakes {
		s.hinted = false // a tick that came meanwhile does not cut the wait short
	}
	if err == nil && !s.hinted {
		delete(q.keys, key)
	}
	q.announceLocked()
	q.mu.Unlock()
	q.work.Done(key)
}

// Forget drops a key, whatever is queued or waits for it. While a worker holds
// it, that happens as soon as it is done.
func (q *Queue) Forget(key targets.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limiter.Forget(key)
	q.Costly(key, false)
	switch s := q.keys[key]; {
	case s == nil:
	case s.working:
		s.hinted, s.wakes, s.forgotten = false, false, true
	default:
		delete(q.keys, key)
	}
	q.announceLocked()
}

// ShutDown makes the queue refuse hints and hand out nothing more, also not
// what is queued. Keys that are being worked on may still be given back.
func (q *Queue) ShutDown() {
	q.mu.Lock()
	q.closed = true
	q.announceLocked()
	q.mu.Unlock()
	q.work.ShutDown()
}
