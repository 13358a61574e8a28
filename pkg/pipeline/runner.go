package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/sources"
)

type source = sources.Source

// every calls f after each interval, until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) {
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

// runner runs sources. It can start and stop some while others continue.
type runner struct {
	ctx context.Context // the context of all runs
	all map[source]*run
}

// run is a running source.
type run struct {
	stop context.CancelFunc
	done chan struct{}
}

// start starts the wanted sources that do not run yet.
func (r *runner) start(wanted []source) {
	for _, s := range wanted {
		if r.all[s] != nil {
			continue
		}
		ctx, stop := context.WithCancel(r.ctx)
		one := &run{stop: stop, done: make(chan struct{})}
		go func() {
			defer close(one.done)
			s.Run(ctx)
		}()
		if r.all == nil {
			r.all = map[source]*run{}
		}
		r.all[s] = one
	}
}

// keep stops all sources except the wanted ones, and returns when they have ended.
func (r *runner) keep(wanted []source) {
	var ending sync.WaitGroup
	for s, one := range r.all {
		if slices.Contains(wanted, s) {
			continue
		}
		one.stop()
		ending.Go(func() { <-one.done })
		delete(r.all, s)
	}
	ending.Wait()
}
