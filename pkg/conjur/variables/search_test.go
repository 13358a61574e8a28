package variables_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
)

// gateway refuses all that asks for values and, if deaf, for anything about them.
func gateway(deaf bool) func(http.ResponseWriter, *http.Request, conjur.Kind) bool {
	return func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
		switch kind {
		case conjur.KindBatch, conjur.KindVariable:
			w.WriteHeader(http.StatusForbidden)
			return true
		case conjur.KindCheck, conjur.KindResource, conjur.KindList:
			if deaf {
				w.WriteHeader(http.StatusNotFound)
			}
			return deaf
		}
		return false
	}
}

// A gateway that refuses for good costs some requests a poll, however many
// variables are behind it, and its end is seen at once.
func TestGatewayThatRefusesForGoodIsAskedLittle(t *testing.T) {
	for name, deaf := range map[string]bool{"all": true, "what asks for values": false} {
		for _, n := range []int{2, 20, 60} {
			t.Run(fmt.Sprintf("%s, %d variables", name, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, ids := conjurtest.Filled(n)
					c := serve(t, d, nil)
					poll(t, c, ids)
					d.SetIntercept(gateway(deaf))
					refuse := func(polls int) (requests int) {
						d.Log()
						for range polls {
							if changed, err := c.Changed(t.Context(), ids); err == nil || len(changed) > 0 {
								t.Errorf("changed %q (%v)", changed, err)
							}
							time.Sleep(every)
						}
						return len(d.Log())
					}
					first, polls := refuse(1), 40
					if rest := refuse(polls); rest > 4*polls {
						t.Errorf("%d requests in the first poll, then %d in %d", first, rest, polls)
					}
					d.SetIntercept(nil)
					poll(t, c, ids)
				})
			})
		}
	}
}

// What is behind the gateway is found out in a few polls when that is gone: also
// where a batch is refused for another reason, and where there is no batch.
func TestSearchGoesOnWhenTheGatewayIsGone(t *testing.T) {
	for name, gone := range map[string]int{"some are there": 0, "all are gone": 20} {
		t.Run(name, func(t *testing.T) {
			for polls := range 20 {
				synctest.Test(t, func(t *testing.T) {
					d, ids := conjurtest.Filled(20)
					c := serve(t, d, nil)
					poll(t, c, ids)
					for _, id := range ids[:gone] {
						d.Change(id, func(v *conjurtest.Variable) { v.Missing = true })
					}
					_, _ = c.Changed(t.Context(), ids)
					d.SetIntercept(gateway(true))
					for range 2 + polls {
						time.Sleep(every)
						_, _ = c.Changed(t.Context(), ids)
					}
					d.SetIntercept(nil)
					d.Change(ids[3], func(v *conjurtest.Variable) { *v = conjurtest.Variable{Broken: true} })
					d.Set(ids[7], "new")
					for n := 1; ; n++ {
						time.Sleep(every)
						if changed, _ := c.Changed(t.Context(), ids); slices.Contains(changed, ids[7]) {
							return
						}
						if n == 6 {
							t.Fatalf("not seen in %d polls, after %d before the gateway", n, polls)
						}
					}
				})
			}
		})
	}
}
