// Package queue decides which keys need work, and when. It folds any number of hints for
// a key into one entry and never hands a key to two workers. It holds failed keys until
// their retry is due.
package queue

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/targets"
)

// Hint says that a key may be stale, and names the source of that information.
type Hint struct {
	// Trigger names the source of the hint, for logs. It never contains the change
	// itself.
	Trigger string
	// Wakes means that an input of the key changed. Such a hint also reaches a key that
	// is backing off or parked; a mere tick does not.
	Wakes bool
}

// Item is a key that a worker took.
type Item struct {
	Key targets.Key
	// Trigger is the Trigger of the item's first hint, or "retry".
	Trigger string
	// Since is when that hint arrived, or when the retry was due.
	Since time.Time
}

// Enqueuer accepts hints for keys.
type Enqueuer interface {
	Enqueue(h Hint, keys ...targets.Key)
}

// Config says how a queue treats failures.
type Config struct {
	// Backoff sets the delays between the retries of a key.
	Backoff retry.Backoff
	// Limit is the number of retries before the queue gives up on a key: 0 for none,
	// negative for no limit.
	Limit int
	// Permanent reports whether no retry can fix an error. Such keys are parked until one
	// of their inputs changes. nil means that no error is permanent.
	Permanent func(error) bool
	// Delay is the time after New at which a key is first handed out; nil means
	// immediately.
	Delay func(targets.Key) time.Duration
	// Name and Metrics enable the metrics of the queue; nil disables them.
	Name    string
	Metrics workqueue.MetricsProvider
}

// Queue is a rate-limited work queue of target keys, based on client-go's. All methods
// may be called from any goroutine. New starts a goroutine, which ShutDown stops.
type Queue struct {
	config  Config
	limiter *limiter
	work    workqueue.TypedDelayingInterface[targets.Key]
	order   *order // of work
	began   time.Time
	taking  chan struct{} // held by the worker that chooses keys in Take

	mu      sync.Mutex
	closed  bool
	keys    map[targets.Key]*state // keys that are not done without error
	changed chan struct{}          // closed and replaced whenever the state of a key changes
}

// state is the state of one key. A settled key is not hinted and not working.
type state struct {
	hinted  bool // a sync was requested but has not started
	wakes   bool // … because of a changed input
	working bool
	// forgotten means that the outcome of the work is ignored.
	forgotten bool
	trigger   string
	since     time.Time
	err       error     // of the last sync
	retryAt   time.Time // of a retry, or by DoneUntil; zero: nothing is scheduled
}

// New returns a queue and starts its timer goroutine.
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

// Add adds hints for keys. It returns the refused keys: those that are backing off or
// parked, if the hint does not wake, and all keys after ShutDown.
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

// Take waits for work and returns a share: several keys, in which namespaces take turns.
// size gets the number of waiting keys and returns how many to take. Keys of a namespace
// of which no worker holds a key come first. If all other workers hold keys, the share
// contains only such keys. A costly key is the last one. After ShutDown, Take returns no
// keys, whatever is queued. Each key must be given back with Done.
func (q *Queue) Take(size func(waiting int) int) (items []Item) {
	q.order.enter()
	q.taking <- struct{}{} // only one worker chooses keys
	defer func() {
		q.order.leave(items)
		<-q.taking
	}()

	most := 1 // until the first key arrives: before, nothing may wait
	for len(items) < most {
		closed := q.isClosed()
		if !q.order.choose(closed) { // a closed queue hands out nothing, but becomes empty
			if closed || len(items) > 0 {
				break
			}
			<-q.order.changed.C()
			continue
		}
		key, _ := q.work.Get() // returns at once
		item, due := q.begin(key)
		if !due {
			q.work.Done(key)
			continue
		}
		items = append(items, item)
		if q.order.isCostly(key) {
			break // so that keys arriving now come before the next costly one
		}
		if len(items) == 1 {
			most = size(1 + q.work.Len())
		}
	}
	return items
}

func (q *Queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// begin marks the key as being worked on. It does not if the queue was shut down, or if
// the key only woke from a delay that a later sync has made obsolete.
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
			// The work queue keeps only the shortest delay of a key. Therefore it dropped
			// the delay of the coming retry in favor of this one.
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

// Done takes a key back with the outcome of its sync. Only Done forgets, retries or parks
// keys.
func (q *Queue) Done(key targets.Key, err error) {
	q.mu.Lock()
	s := q.keys[key]
	if s.forgotten {
		s.forgotten, err = false, nil
		q.Costly(key, false) // the worker may have said otherwise meanwhile
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
		s.hinted = false // a tick in the meantime does not shorten the delay
	}
	if err == nil && !s.hinted && s.retryAt.IsZero() {
		delete(q.keys, key)
	}
	q.announceLocked()
	q.mu.Unlock()
	q.order.release(key)
	q.work.Done(key)
}

// Forget drops a key and everything that is queued or scheduled for it. If a worker holds
// the key, it is dropped after the worker has finished.
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

// ShutDown makes the queue refuse hints and hand out no more keys, not even queued ones.
// Keys in progress may still be given back.
func (q *Queue) ShutDown() {
	q.mu.Lock()
	q.closed = true
	q.announceLocked()
	q.mu.Unlock()
	q.work.ShutDown()
	q.order.changed.Rouse()
}
