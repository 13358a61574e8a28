// Package wake makes a goroutine check at intervals, or at once.
package wake

import (
	"context"
	"sync"
	"time"
)

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

// Loop calls next, which does due work, until ctx ends. It waits between the calls as long
// as next returns, or until Rouse. A negative time means that no work is known.
func (w *Wake) Loop(ctx context.Context, next func() time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait := next()
		if wait < 0 {
			wait = time.Hour
		}
		timer.Reset(wait)
		select {
		case <-w.C():
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// Every calls f after each interval, until ctx ends.
func Every(ctx context.Context, interval time.Duration, f func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f()
		case <-ctx.Done():
			return
		}
	}
}
