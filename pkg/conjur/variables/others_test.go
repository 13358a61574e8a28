package variables_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
)

// A fetch looks by itself how the others are doing, in case no poll does.
func TestRollCall(t *testing.T) {
	for _, mass := range []bool{false, true} {
		t.Run(fmt.Sprint(mass), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, ids := conjurtest.Filled(300)
				d.Change(ids[299], func(v *conjurtest.Variable) { v.Missing = true })
				c := serve(t, d, nil)
				c.Fetch(t.Context(), ids[:200]) // a share,
				c.Fetch(t.Context(), ids[200:]) // and another one
				if mass {
					for _, id := range ids[:250] {
						d.Change(id, func(v *conjurtest.Variable) { v.Forbidden = true })
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
				wantGone(t, a, variables.Missing)
			})
		})
	}
}

func TestRollCallIsRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Latency = time.Millisecond
		ids := conjurtest.Names(100)
		d.Fill(ids)
		d.Change(ids[0], func(v *conjurtest.Variable) { v.Missing = true })
		c := serve(t, d, func(c *setup) { c.Confirmations = 3 })
		c.Fetch(t.Context(), ids)
		rollCalls := func(want int) {
			t.Helper()
			d.Log()
			fetch(t, c, ids[0])
			if n := conjurtest.Count(d.Log(), conjur.KindBatch); n != want {
				t.Errorf("%d batches, want %d", n, want)
			}
		}
		rollCalls(0) // another proof is needed anyway
		rollCalls(1)
		wantGone(t, fetch(t, c, ids[0]), variables.Missing)
		rollCalls(0)

		d.Change(ids[1], func(v *conjurtest.Variable) { v.Missing = true })
		poll(t, c, ids, ids[0])
		poll(t, c, ids)
		poll(t, c, ids, ids[1])
		d.Change(ids[2], func(v *conjurtest.Variable) { v.Missing = true })
		poll(t, c, ids)
		poll(t, c, ids) // knows how the others are
		d.Log()
		wantGone(t, fetch(t, c, ids[2]), variables.Missing)
		if n := conjurtest.Count(d.Log(), conjur.KindBatch); n != 0 {
			t.Errorf("%d batches after a poll", n)
		}
	})
}
