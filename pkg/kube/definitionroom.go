package kube

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// room is the total size of the definitions that a Watch stores, in bytes. Sizes are
// recorded during decoding, because an informer collects all objects before it passes any
// on.
type room struct {
	mu    sync.Mutex
	sizes map[cache.ObjectName]int
	used  map[string]int // by namespace
}

// take records the size of an object instead of its earlier size; 0 for an object that is
// gone. If a namespace would exceed most, take records nothing and returns false. A most
// of 0 means no limit.
func (r *room) take(name cache.ObjectName, size, most int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sizes == nil {
		r.sizes, r.used = map[cache.ObjectName]int{}, map[string]int{}
	}
	left := r.used[name.Namespace] - r.sizes[name]
	fits := most == 0 || left+size <= most
	if !fits {
		size = 0
	}
	r.sizes[name], r.used[name.Namespace] = size, left+size
	if size == 0 {
		delete(r.sizes, name)
	}
	if left+size == 0 {
		delete(r.used, name.Namespace)
	}
	return fits
}

// fit drops the definition of a Secret that has no room.
func (w *Watch[T]) fit(s *Secret) {
	if size := s.definition(); !w.room.take(cache.MetaObjectToName(s), size, w.Definitions) {
		s.drop(size, true)
	}
}
