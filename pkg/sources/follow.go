package sources

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The pauses between the tries to watch: the first, the longest, and how long
// a watch must have stood for the next pause to be a first one again.
const (
	firstPause   = 200 * time.Millisecond
	longestPause = 10 * time.Second
	steady       = 30 * time.Second
)

// lookAtLeast is the time between looks when refresh is off.
const lookAtLeast = time.Minute

// looksPerTry is how many looks come between two tries to watch what may not
// be watched, but read.
const looksPerTry = 4

// follow keeps one watch of the Kubernetes API going.
type follow struct {
	// watch is one try: it returns when the watch breaks; see kube.Watch.
	watch func(context.Context) error
	// look reads what may not be watched. Nil: a try to watch begins with a
	// list, and that is all that can be had.
	look     func(context.Context) error
	interval time.Duration
	// failed is told why there is no watch.
	failed func(error)
}

// run watches until ctx ends. While the right to watch is missing it looks at
// each interval, and goes on watching soon after the right has come back.
func (f *follow) run(ctx context.Context) {
	if f.interval <= 0 {
		f.interval = lookAtLeast
	}
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstPause), backoff.WithMaxInterval(longestPause),
		backoff.WithMultiplier(2), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		begin := time.Now()
		err := f.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		if apierrors.IsForbidden(err) {
			f.refused(ctx, err)
			continue
		}
		if err != nil {
			f.failed(err)
		}
		if time.Since(begin) > steady {
			pauses.Reset()
		}
		pause(ctx, pauses.NextBackOff())
	}
}

// refused does without a watch until it is time to try again.
func (f *follow) refused(ctx context.Context, err error) {
	const advice = "grant the verbs list and watch to hear of changes at once"
	if f.look == nil {
		f.failed(fmt.Errorf("%w; %s (trying again every %v)", err, advice, f.interval))
		pause(ctx, f.interval)
		return
	}
	for n := 0; n < looksPerTry && ctx.Err() == nil; n++ {
		lookErr := f.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case lookErr != nil:
			f.failed(lookErr)
		default:
			f.failed(fmt.Errorf("%w; %s (reading it every %v until then)", err, advice, f.interval))
		}
		pause(ctx, f.interval)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
