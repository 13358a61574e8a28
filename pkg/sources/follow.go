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

// What may not be watched is read, at the longest this far apart.
const longestInterval = 5 * time.Minute

// An API server that has just been started refuses everything until it knows
// its roles. So the first refusals are taken for a passing trouble, and only
// then there are some looks for each try to watch.
const (
	firstRefusals = 8
	looksPerTry   = 4
)

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
	if f.interval <= 0 || f.interval > longestInterval {
		f.interval = longestInterval
	}
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstPause), backoff.WithMaxInterval(longestPause),
		backoff.WithMultiplier(2), backoff.WithMaxElapsedTime(0))
	refusals := 0 // in a row
	for ctx.Err() == nil {
		begin := time.Now()
		err := f.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begin) > steady {
			pauses.Reset()
			refusals = 0
		}
		if !apierrors.IsForbidden(err) {
			refusals = 0
			if err != nil {
				f.failed(err)
			}
			pause(ctx, pauses.NextBackOff())
			continue
		}
		refusals++
		if refusals <= firstRefusals {
			f.refused(ctx, err, 1, min(pauses.NextBackOff(), f.interval))
		} else {
			f.refused(ctx, err, looksPerTry, f.interval)
		}
	}
}

// refused does without a watch until it is time to try again: it looks so many
// times, if it can, and pauses after each.
func (f *follow) refused(ctx context.Context, err error, looks int, wait time.Duration) {
	const advice = "grant the verbs list and watch to hear of changes at once"
	if f.look == nil {
		f.failed(fmt.Errorf("%w; %s (trying again every %v)", err, advice, f.interval))
		pause(ctx, wait)
		return
	}
	for ; looks > 0 && ctx.Err() == nil; looks-- {
		lookErr := f.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case lookErr != nil:
			f.failed(lookErr)
		default:
			f.failed(fmt.Errorf("%w; %s (reading it every %v until then)", err, advice, f.interval))
		}
		pause(ctx, wait)
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
