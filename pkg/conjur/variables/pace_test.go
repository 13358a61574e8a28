package variables_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
)

// pacing runs f with a client whose polls are 10 requests, at 5 requests per second and 20
// at once, and 2.5 more per second for polls. It gives f a function that repeats a call until f returns. Afterwards it checks
// the limit of all requests.
func pacing(t *testing.T, f func(t *testing.T, c client, ids []string, repeat func(func(context.Context)))) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(2950)
		c := serve(t, d, func(c *setup) { c.RateLimit = 5 })
		ctx, stop := context.WithCancel(t.Context())
		var repeated sync.WaitGroup
		f(t, c, ids, func(do func(context.Context)) {
			repeated.Go(func() {
				for ctx.Err() == nil {
					do(ctx)
				}
			})
		})
		stop()
		repeated.Wait()
		log := d.Log()
		for i, from := range log {
			for j, to := range log[i:] {
				if took := to.At.Sub(from.At); float64(j+1) > 20+1+(5+2.5)*took.Seconds()+1e-6 {
					t.Fatalf("%d requests within %v", j+1, took)
				}
			}
		}
	})
}

// Somebody waits for a fetch, but not for a poll, which therefore takes nothing from it.
func TestAFetchNeverWaitsForPolls(t *testing.T) {
	pacing(t, func(t *testing.T, c client, ids []string, repeat func(func(context.Context))) {
		repeat(func(ctx context.Context) { _, _ = c.Changed(ctx, ids) })
		time.Sleep(time.Minute)
		for range 20 {
			began := time.Now()
			wantFound(t, fetch(t, c, ids[0]), "value of "+ids[0])
			if took := time.Since(began); took != 0 {
				t.Errorf("a fetch beside polls took %v", took)
			}
			time.Sleep(time.Second / 5) // as often as the rate permits
		}
	})
}

// However much is fetched, polls have half as many requests, but for the first seconds.
func TestFetchesLeavePollsRequests(t *testing.T) {
	pacing(t, func(t *testing.T, c client, ids []string, repeat func(func(context.Context))) {
		repeat(func(ctx context.Context) { c.Fetch(ctx, ids[:1]) })
		time.Sleep(5 * time.Second)
		for _, most := range []time.Duration{9500 * time.Millisecond, 4500 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), most)
			if _, err := c.Changed(ctx, ids); err != nil {
				t.Errorf("10 requests of a poll did not end within %v: %v", most, err)
			}
			cancel()
		}
	})
}

// The first fetch of many variables comes before the first polls.
func TestTheFirstFetchComesBeforePolls(t *testing.T) {
	pacing(t, func(t *testing.T, c client, ids []string, repeat func(func(context.Context))) {
		began := time.Now()
		repeat(func(ctx context.Context) { _, _ = c.Changed(ctx, ids) })
		for range 3 {
			c.Fetch(t.Context(), ids)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("30 requests beside polls took %v", took)
		}
	})
}

// Fetches that the rate limit delays share one request.
func TestFetchesThatWaitForTheRateShareARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(20)
		c := serve(t, d, func(c *setup) { c.RateLimit = 1 })
		for range 3 { // with a log-in, they are the burst
			c.Fetch(t.Context(), ids)
		}
		d.Log()
		var fetches sync.WaitGroup
		for _, id := range ids {
			fetches.Go(func() { wantFound(t, fetch(t, c, id), "value of "+id) })
			time.Sleep(10 * time.Millisecond)
		}
		fetches.Wait()
		d.WantAsked(t, map[conjur.Kind]int{conjur.KindBatch: 1})
	})
}

// Targets that become known one by one at the start share requests, so that enough of the
// burst remains for the rest of them. Later, a fetch never waits for others.
func TestTheFirstFetchesShareRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(100)
		c := serve(t, d, nil)
		for _, most := range []int{11, 100} {
			var fetches sync.WaitGroup
			for _, id := range ids {
				fetches.Go(func() { wantFound(t, fetch(t, c, id), "value of "+id) })
				time.Sleep(time.Millisecond)
			}
			fetches.Wait()
			if n := conjurtest.Count(d.Log(), conjur.KindBatch); n > most || n < most-1 {
				t.Errorf("%d fetches took %d requests, want %d", len(ids), n, most)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// Who gives up a fetch that waits for the rate limit does not take it from others.
func TestGivingUpWhileTheRateIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(2)
		c := serve(t, d, func(c *setup) { c.RateLimit = 1 })
		for range 3 { // with a log-in, they are the burst
			fetch(t, c, ids[0])
		}
		ctx, giveUp := context.WithCancel(t.Context())
		var fetches sync.WaitGroup
		fetches.Go(func() { wantUnknown(t, c.Fetch(ctx, ids[:1])[ids[0]]) })
		synctest.Wait()
		giveUp()
		fetches.Go(func() { wantFound(t, fetch(t, c, ids[1]), "value of "+ids[1]) })
		fetches.Wait()
	})
}
