package notify

import "sync"

// wake rouses a goroutine that waits. The zero wake is ready.
type wake struct {
	once sync.Once
	c    chan struct{}
}

// channel returns what the goroutine waits on.
func (w *wake) channel() chan struct{} {
	w.once.Do(func() { w.c = make(chan struct{}, 1) })
	return w.c
}

// rouse wakes it, or has its next wait end at once.
func (w *wake) rouse() {
	select {
	case w.channel() <- struct{}{}:
	default:
	}
}
