// Package wake makes a goroutine check at once, instead of at its next interval.
package wake

import "sync"

// Wake wakes a waiting goroutine. The zero Wake is ready.
type Wake struct {
	once sync.Once
	c    chan struct{}
}

// C returns the channel that the goroutine receives from.
func (w *Wake) C() <-chan struct{} { return w.channel() }

func (w *Wake) channel() chan struct{} {
	w.once.Do(func() { w.c = make(chan struct{}, 1) })
	return w.c
}

// Rouse wakes the goroutine, or ends its next wait at once. Rouse does not block.
func (w *Wake) Rouse() {
	select {
	case w.channel() <- struct{}{}:
	default:
	}
}
