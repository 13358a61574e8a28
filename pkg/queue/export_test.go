package queue

import "maps"

// Len is the number of keys that wait for a worker now.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for s := range maps.Values(q.keys) {
		if !s.working && (s.hinted || s.retryDue()) {
			n++
		}
	}
	return n
}

// Kept is the number of keys of which the queue knows anything.
func (q *Queue) Kept() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.keys) + len(q.limiter.keys) + len(q.order.costly)
}

// AnotherIsFree makes the queue believe that another worker is free.
func (q *Queue) AnotherIsFree() { q.order.enter() }
