package kube

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// room is how many bytes the definitions that a Watch stores have. It is booked as
// they are decoded, since an informer collects all that there is before anybody
// hears of it.
type room struct {
	mu    sync.Mutex
	sizes map[cache.ObjectName]int
	used  map[string]int // by namespace
}

// take books the bytes of an object instead of what it had, 0 for one that is
// gone. It books none, and reports false, where a namespace would have more than
// most; 0: no limit.
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

// fit drops the definition of a Secret for which there is no room.
func (w *Watch[T]) fit(s *Secret) {
	if size := s.definition(); !w.room.take(cache.MetaObjectToName(s), size, w.Definitions) {
		s.drop(size, true)
	}
}
