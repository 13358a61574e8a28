package workers

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

// Work is the queue of a pool, such as a queue.Queue. Take waits for keys, and returns as
// many as size answers, or none after ShutDown. Costly says whether a sync of a key takes
// much work. Done gives a key back.
type Work interface {
	Take(size func(waiting int) int) []queue.Item
	Costly(key targets.Key, is bool)
	Done(key targets.Key, err error)
	ShutDown()
}

// PoolConfig configures a pool.
type PoolConfig struct {
	Work   Work
	Syncer *Syncer
	// Workers is the number of workers that one namespace, or all files, can occupy; less
	// than 1 means 1. The pool has one more, which is left for other namespaces.
	Workers int
	// Timeout limits the sync of the keys that a worker took together; zero means 3 min.
	Timeout time.Duration
	// Grace is how long writes may continue after Run's context ends. Reads stop
	// immediately.
	Grace time.Duration
	// Identity is Outcome.Identity of all outcomes.
	Identity string
	// Listener, if not nil, is called with each key that a worker took. It is also called
	// with each outcome, before the key is given back.
	Listener Listener
}

// Outcome is the result of one sync of one target.
type Outcome struct {
	Result
	Identity string // the identity that reads the target
	Item     queue.Item
}

// Word returns the name of the outcome in metrics and traces.
func (o Outcome) Word() string {
	switch {
	case o.Removed:
		return health.OutcomeRemoved
	case o.Err != nil:
		return health.OutcomeFailed
	case o.Wrote:
		return health.OutcomeWritten
	}
	return health.OutcomeUnchanged
}

// Listener is told of each start and outcome. Several goroutines call it, and it must not
// block.
type Listener interface {
	Started(queue.Item)
	Settled(Outcome)
}

// Pool runs a limited number of workers.
type Pool struct {
	PoolConfig
	syncer atomic.Pointer[Syncer]
	busy   []atomic.Int64 // by worker: when it took its keys, in Unix nanoseconds; 0: idle
}

// NewPool returns a pool that has not started.
func NewPool(c PoolConfig) *Pool {
	if c.Timeout <= 0 {
		c.Timeout = 3 * time.Minute
	}
	c.Workers = max(c.Workers, 1)
	p := &Pool{PoolConfig: c, busy: make([]atomic.Int64, c.Workers+1)}
	p.syncer.Store(c.Syncer)
	return p
}

// SetPolicy changes the policy, starting with the next sync.
func (p *Pool) SetPolicy(policy Policy) {
	next := *p.syncer.Load()
	next.Policy = policy
	p.syncer.Store(&next)
}

// Workers share the waiting keys. Keys taken together fetch their values in one request,
// but a hanging write delays the keys of its namespace behind it.
const (
	leastKeys = 16 // fewer keys are not worth a second request
	mostKeys  = 100
)

// costlyWork is the Result.Work above which a target counts as costly; it takes about ten
// milliseconds. Common templates need a hundredth of that.
const costlyWork = 1 << 20

// Run works until ctx ends. Then it lets the workers write the content that they have
// read, and returns when all workers have finished. It shuts the queue down.
func (p *Pool) Run(ctx context.Context) {
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWriting()
	reading, stopReading := context.WithCancel(context.WithoutCancel(ctx))
	defer stopReading()

	var workers, drain sync.WaitGroup
	finished := make(chan struct{})
	drain.Go(func() {
		defer p.Work.ShutDown()
		select {
		case <-ctx.Done():
		case <-finished:
			return
		}
		p.Work.ShutDown() // before the reads end, so that a worker takes no other keys then
		stopReading()
		grace := time.NewTimer(p.Grace)
		defer grace.Stop()
		select {
		case <-grace.C:
			stopWriting()
		case <-finished:
		}
	})
	for i := range p.busy {
		workers.Go(func() { p.runWorker(reading, writing, &p.busy[i]) })
	}
	workers.Wait()
	close(finished)
	drain.Wait()
}

func (p *Pool) runWorker(reading, writing context.Context, busy *atomic.Int64) {
	for p.processNext(reading, writing, busy) {
	}
}

// processNext syncs a fair share of the waiting keys. It returns false if the queue was
// shut down.
func (p *Pool) processNext(reading, writing context.Context, busy *atomic.Int64) bool {
	items := p.Work.Take(func(waiting int) int {
		idle := max(p.idle()-1, 1) // with this worker, without the one for other namespaces
		busy.Store(time.Now().UnixNano())
		return min(max((waiting+idle-1)/idle, leastKeys), mostKeys)
	})
	if len(items) == 0 {
		return false
	}
	defer busy.Store(0)
	deadline := time.Now().Add(p.Timeout)
	reading, stopReading := context.WithDeadline(reading, deadline)
	defer stopReading()
	writing, stopWriting := context.WithDeadline(writing, deadline)
	defer stopWriting()

	keys := make([]targets.Key, len(items))
	byKey := make(map[targets.Key]queue.Item, len(items))
	for i, item := range items {
		keys[i], byKey[item.Key] = item.Key, item
		if p.Listener != nil {
			p.Listener.Started(item)
		}
	}
	p.syncer.Load().Sync(reading, writing, keys, func(r Result) {
		if p.Listener != nil {
			p.Listener.Settled(Outcome{r, p.Identity, byKey[r.Key]})
		}
		if r.Work > 0 {
			p.Work.Costly(r.Key, r.Work > costlyWork)
		}
		p.Work.Done(r.Key, r.Err)
	})
	return true
}

// idle returns the number of workers that hold no keys.
func (p *Pool) idle() (n int) {
	for i := range p.busy {
		if p.busy[i].Load() == 0 {
			n++
		}
	}
	return n
}

// Overdue reports whether as many workers as files can occupy have held their keys for
// much longer than the timeout allows.
func (p *Pool) Overdue() bool {
	limit := time.Now().Add(-p.Timeout - 30*time.Second).UnixNano()
	overdue := 0
	for i := range p.busy {
		if began := p.busy[i].Load(); began != 0 && began <= limit {
			overdue++
		}
	}
	return overdue >= p.Workers
}
