package queue

import (
	"sync"

	"github.com/secretsync/syncer/internal/fairqueue"
	"github.com/secretsync/syncer/internal/wake"
	"github.com/secretsync/syncer/pkg/targets"
)

// order is the order in which a work queue hands out keys. Namespaces take turns, and the
// keys of one namespace come first in, first out. A namespace without a worker comes
// first, and the last free worker takes only keys of such namespaces. Costly keys come
// after all others.
type order struct {
	changed wake.Wake // wakes the worker that waits for a key that it may take

	mu          sync.Mutex
	first, last fairqueue.FIFO[targets.Key] // last: the costly keys
	costly      map[targets.Key]bool
	next        []targets.Key  // the chosen key, which Pop returns; at most one
	free        int            // workers in Take
	held        map[string]int // namespace → its keys that workers hold
}

func newOrder() *order {
	return &order{costly: map[targets.Key]bool{}, held: map[string]int{}}
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
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.costly[key] {
		o.last.Push(key.Namespace(), key)
	} else {
		o.first.Push(key.Namespace(), key)
	}
	o.changed.Rouse()
}

// Len returns the number of waiting keys.
func (o *order) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first.Len() + o.last.Len() + len(o.next)
}

// choose chooses the key that Pop returns next. It returns false if the worker may take
// no key now. If anyone is true, it may take every key.
func (o *order) choose(anyone bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	without := func(namespace string) bool { return o.held[namespace] == 0 }
	with := func(string) bool { return anyone || o.free > 1 }
	for _, lines := range []*fairqueue.FIFO[targets.Key]{&o.first, &o.last} {
		for _, may := range []func(string) bool{without, with} {
			if key, ok := lines.Pop(may); ok {
				o.next = append(o.next, key)
				return true
			}
		}
	}
	return false
}

// Pop removes and returns the chosen key.
func (o *order) Pop() (key targets.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key, o.next = o.next[0], o.next[:0]
	return key
}

// enter notes that a worker is free. The worker that waits may now be one of several.
func (o *order) enter() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.free++
	o.changed.Rouse()
}

// leave notes that a worker is no longer free, and which keys it holds.
func (o *order) leave(items []Item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.free--
	for _, item := range items {
		o.held[item.Key.Namespace()]++
	}
}

// release notes that a worker no longer holds a key.
func (o *order) release(key targets.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	namespace := key.Namespace()
	if o.held[namespace]--; o.held[namespace] == 0 {
		delete(o.held, namespace)
		o.changed.Rouse()
	}
}

// Costly says whether a sync of the key takes much work. A costly key is handed out only
// if no other key waits that the worker may take, and as the last one of a share.
func (q *Queue) Costly(key targets.Key, is bool) {
	q.order.mu.Lock()
	defer q.order.mu.Unlock()
	if is {
		q.order.costly[key] = true
	} else {
		delete(q.order.costly, key)
	}
}
