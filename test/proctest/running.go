package proctest

import (
	"context"
	"sync"
	"testing"
)

// Running runs f until the test's end, or until stop is called. stop waits for f to
// return.
func Running(t testing.TB, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { f(ctx) })
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}
