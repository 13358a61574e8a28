package conjur_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
)

// A fetch looks by itself how the others are doing, in case no poll does.
func TestRollCall(t *testing.T) {
	for _, mass := range []bool{false, true} {
		t.Run(fmt.Sprint(mass), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDouble()
				ids := names(300)
				d.fill(ids)
				d.change(ids[299], func(v *doubleVar) { v.missing = true })
				c := serve(t, d, nil)
				c.Fetch(t.Context(), ids[:200]) // a share,
				c.Fetch(t.Context(), ids[200:]) // and another one
				if mass {
					for _, id := range ids[:250] {
						d.change(id, func(v *doubleVar) { v.forbidden = true })
					}
				}
				time.Sleep(time.Second)
				a := fetch(t, c, ids[299])
				if mass {
					wantUnknown(t, a)
					time.Sleep(time.Second)
					wantUnknown(t, fetch(t, c, ids[299]))
					return
				}
				wantGone(t, a, conjur.Missing)
			})
		})
	}
}

func TestRollCallIsRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble()
		d.latency = time.Millisecond
		ids := names(100)
		d.fill(ids)
		d.change(ids[0], func(v *doubleVar) { v.missing = true })
		c := serve(t, d, func(c *conjur.Config) { c.Confirmations = 3 })
		c.Fetch(t.Context(), ids)
		rollCalls := func(want int) {
			t.Helper()
			d.log()
			fetch(t, c, ids[0])
			if n := count(d.log(), conjur.KindBatch); n != want {
				t.Errorf("%d batches, want %d", n, want)
			}
		}
		rollCalls(0) // another proof is needed anyway
		rollCalls(1)
		wantGone(t, fetch(t, c, ids[0]), conjur.Missing)
		rollCalls(0)

		d.change(ids[1], func(v *doubleVar) { v.missing = true })
		poll(t, c, ids, ids[0])
		poll(t, c, ids)
		poll(t, c, ids, ids[1])
		d.change(ids[2], func(v *doubleVar) { v.missing = true })
		poll(t, c, ids)
		poll(t, c, ids) // knows how the others are
		d.log()
		wantGone(t, fetch(t, c, ids[2]), conjur.Missing)
		if n := count(d.log(), conjur.KindBatch); n != 0 {
			t.Errorf("%d batches after a poll", n)
		}
	})
}
