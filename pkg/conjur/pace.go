package conjur

import (
	"context"
	"math"
	"time"

	"golang.org/x/time/rate"
)

const (
	// burstFor is the time in seconds in which the requests that may be sent at once would
	// be sent at the rate. They are sent one after the other all the same. A start with
	// 10,000 variables in one group needs up to 171.
	burstFor = 4
	// pollReserve is the share of the burst that polls leave to the other requests.
	pollReserve = 0.8
	// pollShare is the rate that polls have besides that of the others, as a share of it.
	pollShare = 0.5
	// pollShareFrom is the age of the client from which polls have that rate. Before,
	// everybody waits for the first fetches, which return all that a poll would find.
	pollShareFrom = 10 * time.Second
	// gatherTime is the time between the first fetches. A list of Secrets makes targets one
	// by one, and workers that take them at once would spend the burst on small requests.
	gatherTime = 10 * time.Millisecond
)

// pace limits the rate of requests. Somebody waits for most of them, but not for those of
// a poll. Polls therefore leave most of the burst to the others, and take nothing from
// them when the rate is scarce.
type pace struct {
	all     *rate.Limiter // all requests but those that polls takes
	reserve float64       // the requests that polls leave to the others
	polls   *rate.Limiter
	first   *rate.Limiter // the first fetches
	start   time.Time
}

func newPace(limit rate.Limit) *pace {
	burst := burstFor * int(limit)
	return &pace{rate.NewLimiter(limit, burst), pollReserve * float64(burst), rate.NewLimiter(pollShare*limit, 1), rate.NewLimiter(rate.Every(gatherTime), 1), time.Now()}
}

// wait returns when a request may be sent.
func (p *pace) wait(ctx context.Context, isPoll bool) error {
	for isPoll && p.all.Tokens() < p.reserve+1 && ctx.Err() == nil {
		if time.Since(p.start) >= pollShareFrom && p.polls.Allow() {
			return nil
		}
		sleep(ctx, time.Duration(float64(time.Second)/float64(p.all.Limit())))
	}
	return p.all.Wait(ctx)
}

// gather returns when a fetch should be sent, with all variables collected until then.
func (p *pace) gather(ctx context.Context) {
	if time.Since(p.start) < pollShareFrom {
		_ = p.first.Wait(ctx)
	}
	for lacks := 1 - p.all.Tokens(); lacks > 0 && ctx.Err() == nil; lacks = 1 - p.all.Tokens() {
		sleep(ctx, time.Duration(math.Ceil(lacks*float64(time.Second)/float64(p.all.Limit()))))
	}
}

// sleep waits for a time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

type pollKey struct{}

// InPoll marks the requests of a poll: nobody waits for them, so that they come after
// others when the rate is scarce.
func InPoll(ctx context.Context) context.Context { return context.WithValue(ctx, pollKey{}, true) }

func isPoll(ctx context.Context) bool { return ctx.Value(pollKey{}) != nil }
