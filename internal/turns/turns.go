// Package turns has namespaces take turns, however much each of them has to do.
package turns

import (
	"container/heap"
	"slices"
	"time"
)

// Turns has keys by namespace, each due at a time. The namespaces in which one is
// due take turns, and each step costs what is due and not what waits. The zero
// Turns is empty and ready; it is for one goroutine at a time.
type Turns[K comparable] struct {
	lines map[string]*line[K]
	order []string // of the namespaces; the next one is the first
}

// Put has a key come when it is due, instead of when it was.
func (t *Turns[K]) Put(namespace string, key K, due time.Time) {
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

// Take takes out the key of a namespace that has been due for longest there. If
// none is due, ok is false, and wait is how long it is to the first; negative: there
// is none.
func (t *Turns[K]) Take(now time.Time) (key K, wait time.Duration, ok bool) {
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
func (t *Turns[K]) Due(namespace string, now time.Time) bool {
	l := t.lines[namespace]
	return l != nil && !l.heap[0].due.After(now)
}

// line is the keys of one namespace, the first one due first.
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
