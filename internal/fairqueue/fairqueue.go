// Package fairqueue makes namespaces take turns, regardless of how much work each of them
// has.
package fairqueue

import (
	"container/heap"
	"slices"
	"time"
)

// Delayed contains keys by namespace, each due at a time. The namespaces with due keys take
// turns. The cost of a step depends on the due keys and not on the waiting ones. The zero
// Delayed is empty and ready. It must not be used concurrently.
type Delayed[K comparable] struct {
	lines map[string]*line[K]
	order []string // of the namespaces; the first one is next
}

// Put schedules a key for the time due, instead of its previous time.
func (t *Delayed[K]) Put(namespace string, key K, due time.Time) {
	l := t.lines[namespace]
	if l == nil {
		l = &line[K]{items: map[K]*item[K]{}}
		if t.lines == nil {
			t.lines = map[string]*line[K]{}
		}
		t.lines[namespace] = l
		t.order = append(t.order, namespace)
	}
	if known := l.items[key]; known != nil {
		known.due = due
		heap.Fix(l, known.at)
		return
	}
	l.items[key] = &item[K]{key: key, due: due}
	heap.Push(l, l.items[key])
}

// Take removes and returns the key of a namespace that has been due for longest there. If
// no key is due, ok is false, and wait is the time until the first one. Without any keys,
// wait is negative.
func (t *Delayed[K]) Take(now time.Time) (key K, wait time.Duration, ok bool) {
	wait = -1
	for i, namespace := range t.order {
		l := t.lines[namespace]
		first := l.heap[0]
		if until := first.due.Sub(now); until > 0 {
			if wait < 0 || until < wait {
				wait = until
			}
			continue
		}
		heap.Pop(l)
		delete(l.items, first.key)
		t.order = slices.Delete(t.order, i, i+1)
		if len(l.heap) == 0 {
			delete(t.lines, namespace)
		} else {
			t.order = append(t.order, namespace)
		}
		return first.key, 0, true
	}
	return key, wait, false
}

// Due reports whether a key of a namespace is due.
func (t *Delayed[K]) Due(namespace string, now time.Time) bool {
	l := t.lines[namespace]
	return l != nil && !l.heap[0].due.After(now)
}

// line contains the keys of one namespace, ordered by due time.
type line[K comparable] struct {
	heap  []*item[K]
	items map[K]*item[K]
}

type item[K comparable] struct {
	key K
	due time.Time
	at  int // in the heap
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (l *line[K]) Len() int           { return len(l.heap) }
func (l *line[K]) Less(i, j int) bool { return l.heap[i].due.Before(l.heap[j].due) }
func (l *line[K]) Swap(i, j int) {
	l.heap[i], l.heap[j] = l.heap[j], l.heap[i]
	l.heap[i].at, l.heap[j].at = i, j
}

func (l *line[K]) Push(x any) {
	x.(*item[K]).at = len(l.heap)
	l.heap = append(l.heap, x.(*item[K]))
}

func (l *line[K]) Pop() any {
	last := l.heap[len(l.heap)-1]
	l.heap = l.heap[:len(l.heap)-1]
	return last
}

// FIFO contains keys by namespace, in the order of arrival. The namespaces take turns,
// key by key. The zero FIFO is empty and ready. It must not be used concurrently.
type FIFO[K any] struct {
	lines map[string][]K
	order []string // of the namespaces; the first one is next
	count int
}

// Push adds a key after the others of its namespace.
func (l *FIFO[K]) Push(namespace string, key K) {
	if l.lines == nil {
		l.lines = map[string][]K{}
	}
	if _, waits := l.lines[namespace]; !waits {
		l.order = append(l.order, namespace)
	}
	l.lines[namespace] = append(l.lines[namespace], key)
	l.count++
}

// Pop removes and returns the key whose turn it is, of the namespaces that may have a
// turn. Its cost depends on the namespaces that it passes over, which keep their turn.
func (l *FIFO[K]) Pop(may func(namespace string) bool) (key K, ok bool) {
	for i, namespace := range l.order {
		if !may(namespace) {
			continue
		}
		copy(l.order[1:i+1], l.order[:i])
		l.order = l.order[1:]
		keys := l.lines[namespace]
		key, keys[0] = keys[0], key
		if l.count--; len(keys) == 1 {
			delete(l.lines, namespace)
		} else {
			l.lines[namespace] = keys[1:]
			l.order = append(l.order, namespace)
		}
		return key, true
	}
	return key, false
}

// Len returns the number of keys.
func (l *FIFO[K]) Len() int { return l.count }
