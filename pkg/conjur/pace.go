package conjur

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

const (
	// pollReserve is the share of the burst that polls leave to the other requests.
	pollReserve = 2.0 / 3
	// pollShare is the share of the rate that polls have a right to, whatever the others
	// take. It is that of one of two requesters that take turns.
	pollShare = 0.5
	// pollShareFrom is the age of the client from which polls have that right. Before,
	// everybody waits for the first fetches, which return all that a poll would find.
	pollShareFrom = 10 * time.Second
	// gatherTime is the time between the first fetches. A list of Secrets makes targets one
	// by one, and workers that take them at once would spend the burst on small requests.
	gatherTime = 10 * time.Millisecond
)

// pace limits the rate of all requests together. Somebody waits for most of them, but not
// for those of a poll. Polls therefore leave a part of the burst to the others.
type pace struct {
	all     *rate.Limiter
	reserve float64       // the requests that polls leave to the others
	polls   *rate.Limiter // the share that polls have a right to
	first   *rate.Limiter // the first fetches
	start   time.Time
}

func newPace(limit rate.Limit) *pace {
	burst := 2 * int(limit)
	return &pace{rate.NewLimiter(limit, burst), pollReserve * float64(burst), rate.NewLimiter(pollShare*limit, 1), rate.NewLimiter(rate.Every(gatherTime), 1), time.Now()}
}

// wait returns when a request may be sent.
func (p *pace) wait(ctx context.Context, yields bool) error {
	if yields {
		p.until(ctx, p.spares)
	}
	return p.all.Wait(ctx)
}

// gather returns when a fetch should be sent, with all variables collected until then.
func (p *pace) gather(ctx context.Context) {
	if time.Since(p.start) < pollShareFrom {
		_ = p.first.Wait(ctx)
	}
	p.until(ctx, func() bool { return p.all.Tokens() >= 1 })
}

// until looks, as often as requests may be sent, whether something is true.
func (p *pace) until(ctx context.Context, isTrue func() bool) {
	for !isTrue() {
		next := time.NewTimer(time.Duration(float64(time.Second) / float64(p.all.Limit())))
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return
		}
	}
}

// spares reports whether a poll may send a request now.
func (p *pace) spares() bool {
	return p.all.Tokens() >= p.reserve+1 || time.Since(p.start) >= pollShareFrom && p.polls.Allow()
}

type pollKey struct{}

// InPoll marks the requests of a poll: nobody waits for them, so that they come after
// others when the rate is scarce.
func InPoll(ctx context.Context) context.Context { return context.WithValue(ctx, pollKey{}, true) }

func isPoll(ctx context.Context) bool { return ctx.Value(pollKey{}) != nil }
