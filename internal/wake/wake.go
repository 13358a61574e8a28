// Package wake has a goroutine look at once at what it looks at from time to time.
package wake

import "sync"

// Wake rouses a goroutine that waits. The zero Wake is ready.
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

// Rouse wakes it, or has its next wait end at once. It does not wait for it.
func (w *Wake) Rouse() {
	select {
	case w.channel() <- struct{}{}:
	default:
	}
}
