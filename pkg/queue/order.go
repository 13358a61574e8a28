package queue

import (
	"sync"

	"k8s.io/client-go/util/workqueue"

	"github.com/secretsync/syncer/pkg/targets"
)

// order is the order in which a work queue hands out keys: first in, first out, with
// costly keys after all others.
type order struct {
	first, last workqueue.Queue[targets.Key]

	mu     sync.Mutex
	costly map[targets.Key]bool
}

func newOrder() *order {
	return &order{
		first:  workqueue.DefaultQueue[targets.Key](),
		last:   workqueue.DefaultQueue[targets.Key](),
		costly: map[targets.Key]bool{},
	}
}

func (o *order) isCostly(key targets.Key) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.costly[key]
}

// Touch does nothing: a waiting key keeps its place.
func (o *order) Touch(targets.Key) {}

// Push adds a key at its place.
func (o *order) Push(key targets.Key) {
	if o.isCostly(key) {
		o.last.Push(key)
	} else {
		o.first.Push(key)
	}
}

// Len returns the number of waiting keys.
func (o *order) Len() int { return o.first.Len() + o.last.Len() }

// Pop removes and returns the next key.
func (o *order) Pop() targets.Key {
	if o.first.Len() > 0 {
		return o.first.Pop()
	}
	return o.last.Pop()
}

// Costly says whether a sync of the key takes much work. A costly key is handed out only
// if no other key waits, and as the last one of a share.
func (q *Queue) Costly(key targets.Key, is bool) {
	q.order.mu.Lock()
	defer q.order.mu.Unlock()
	if is {
		q.order.costly[key] = true
	} else {
		delete(q.order.costly, key)
	}
}
