package variables_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
)

// A fleet whose tokens ended while the server was away does not come back in
// one moment. All of it asks at the same moments, so nothing but the pauses
// after a failure spreads it.
func TestFleetIsSpreadAfterAnOutage(t *testing.T) {
	const fleet, outage = 250, 2 * time.Minute
	for name, retryAfter := range map[string]string{"Retry-After": "60", "no word of when": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := conjurtest.New()
				d.Set("app/a", "v")
				d.Intercept = func(w http.ResponseWriter, _ *http.Request, _ conjur.Kind) bool {
					if retryAfter != "" {
						w.Header().Set("Retry-After", retryAfter)
					}
					w.WriteHeader(http.StatusServiceUnavailable)
					return true
				}
				config := d.Pipe(t)
				begin := time.Now()
				var wg sync.WaitGroup
				for range fleet {
					c := newClient(t, config, nil)
					wg.Go(func() {
						for fetch(t, c, "app/a").Verdict != variables.Found {
							time.Sleep(2 * time.Second)
						}
					})
				}
				time.Sleep(outage - time.Millisecond)
				d.SetIntercept(nil)
				d.Log()
				wg.Wait()
				took := time.Since(begin) - outage
				var perSecond [600]int
				for _, a := range d.Log() {
					if a.Kind == conjur.KindAuthenticate {
						perSecond[int(a.At.Sub(begin.Add(outage))/time.Second)]++
					}
				}
				t.Logf("all are back after %v; the most in one second are %d", took, slices.Max(perSecond[:]))
				if most := slices.Max(perSecond[:]); most > fleet/8 {
					t.Errorf("%d of %d log in within one second", most, fleet)
				}
				if took > 2*time.Minute {
					t.Errorf("the last is back after %v", took)
				}
			})
		})
	}
}

// A server that stalled answers all waiting log-ins in one moment. The requests that
// follow them do not arrive in one moment.
func TestFleetIsSpreadAfterAStall(t *testing.T) {
	const fleet, stall = 250, 40 * time.Second
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Set("app/a", "v")
		config := d.Pipe(t)
		var clients []client
		for range fleet {
			clients = append(clients, newClient(t, config, nil))
			wantFound(t, fetch(t, clients[len(clients)-1], "app/a"), "v")
		}
		time.Sleep(d.Life)
		begin := time.Now()
		d.SetIntercept(func(http.ResponseWriter, *http.Request, conjur.Kind) bool {
			time.Sleep(stall - time.Since(begin))
			return false
		})
		d.Log()
		var wg sync.WaitGroup
		for _, c := range clients {
			wg.Go(func() { wantFound(t, fetch(t, c, "app/a"), "v") })
		}
		wg.Wait()
		var perSecond [61]int
		for _, a := range d.Log() {
			if a.Kind == conjur.KindBatch {
				perSecond[int(a.At.Sub(begin.Add(stall))/time.Second)]++
			}
		}
		if most := slices.Max(perSecond[:]); most > fleet/8 {
			t.Errorf("%d of %d fetch within one second", most, fleet)
		}
	})
}
