package variables_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
)

// setRules changes the rules of a client that is in use.
func setRules(t *testing.T, c client, r variables.Rules) {
	t.Helper()
	if err := c.SetRules(r); err != nil {
		t.Fatal(err)
	}
}

// Other rules cost no login, no connection and no value.
func TestRulesChangeWithoutARequest(t *testing.T) {
	d, ids := conjurtest.Filled(3)
	c := start(t, d, nil)
	poll(t, c, ids)
	d.Log()
	conns := d.Conns
	setRules(t, c, variables.Rules{Confirmations: 5, Grace: time.Hour, Steady: time.Hour, RequestBudget: 512})
	poll(t, c, ids)
	log := d.Log()
	if len(log) != 1 || log[0].Kind != conjur.KindBatch || log[0].Status != 304 || d.Conns != conns {
		t.Errorf("%d requests, %d connections more", len(log), d.Conns-conns)
	}
	if c.SetRules(variables.Rules{Grace: -1}) == nil {
		t.Error("impossible rules were taken")
	}
}

// A proof that was begun goes on under other rules.
func TestProofOutlivesItsRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(4)
		c := serve(t, d, func(c *setup) { c.Confirmations, c.Grace = 5, time.Hour })
		poll(t, c, ids)
		d.Change(ids[0], func(v *conjurtest.Variable) { v.Missing = true })
		for range 2 {
			time.Sleep(every)
			poll(t, c, ids)
		}
		setRules(t, c, variables.Rules{Confirmations: 3, Grace: every})
		time.Sleep(every)
		poll(t, c, ids, ids[0]) // the third time that it was seen
		wantGone(t, fetch(t, c, ids[0]), variables.Missing)
	})
}

// A hold that is on keeps its end, and ends when the brake is switched off.
func TestHoldOutlivesItsRules(t *testing.T) {
	for name, off := range map[string]bool{"another hold": false, "no brake": true} {
		t.Run(name, func(t *testing.T) {
			withBrake(t, 10, nil, func(t *testing.T, h *held) {
				h.missing(h.ids[:8]...)
				for range 3 {
					h.polls()
				}
				h.wantEvents("began 8/10")
				setRules(t, h.c, variables.Rules{Brake: variables.Brake{Disabled: off, Hold: time.Minute}})
				if off {
					time.Sleep(time.Second)
					h.until(2)
					h.wantEvents("passed 8/10")
					wantGone(t, fetch(t, h.c, h.ids[0]), variables.Missing)
					return
				}
				for range 3 * int(time.Minute/every) {
					h.polls()
				}
				h.wantEvents()
				h.wantHeld(h.ids[0], 8, 10)
			})
		})
	}
}

// A value that was held back is believed at once when nothing is to be held back.
func TestSteadySwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Set("app/a", "old")
		c := serve(t, d, func(c *setup) { c.Steady = time.Hour })
		wantFound(t, fetch(t, c, "app/a"), "old")
		d.Set("app/a", "new")
		wantFound(t, fetch(t, c, "app/a"), "new")
		d.Set("app/a", "old")
		wantUnknown(t, fetch(t, c, "app/a"))
		setRules(t, c, variables.Rules{})
		wantFound(t, fetch(t, c, "app/a"), "old")
		poll(t, c, []string{"app/a"}, "app/a") // others may have the one between
	})
}
