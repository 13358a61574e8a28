package conjur_test

import (
	"net/http"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
)

func TestServerThatAnswersPerVariableIsAskedThatWay(t *testing.T) {
	d := newDouble()
	d.perValue = true
	ids := names(600)
	d.fill(ids)
	d.set(ids[1], "\xff\xfe binary")
	c := start(t, d, nil)
	c.Fetch(t.Context(), ids)
	if n := count(d.log(), conjur.KindValues); n != 0 {
		t.Errorf("%d requests to find out what nobody needs to know", n)
	}
	d.change(ids[10], func(v *doubleVar) { v.missing = true })
	d.change(ids[20], func(v *doubleVar) { v.forbidden = true })
	want := func(id string, a conjur.Answer, old bool) {
		t.Helper()
		switch {
		case id == ids[1]:
			wantFound(t, a, "\xff\xfe binary")
		case id == ids[10] && old:
			wantGone(t, a, conjur.Missing)
		case id == ids[20] && old:
			wantGone(t, a, conjur.Forbidden)
		case id == ids[10], id == ids[20]:
			wantSuspect(t, a)
		default:
			wantFound(t, a, "value of "+id)
		}
	}
	for round := range 3 {
		for id, a := range c.Fetch(t.Context(), ids) {
			want(id, a, round > 0)
		}
		log := d.log()
		if batches := count(log, conjur.KindBatch); round > 0 && batches != 0 || count(log, conjur.KindValues) == 0 {
			t.Errorf("round %d: %d batches, %d per variable", round, batches, count(log, conjur.KindValues))
		}
	}
	poll(t, c, ids, ids[10], ids[20])
	poll(t, c, ids)
	if log := d.log(); count(log, conjur.KindValues) != 0 {
		t.Error("a poll must ask conditionally")
	}
}

// What the route says there is no value of leaves the shared question at once,
// also what there was no budget to ask more about, and does not spoil it at the
// next poll.
func TestWhatTheRouteLacksLeavesTheBatch(t *testing.T) {
	for name, spoil := range map[string]func(v *doubleVar){
		"missing":   func(v *doubleVar) { v.missing = true },
		"forbidden": func(v *doubleVar) { v.forbidden = true },
	} {
		d := newDouble()
		d.perValue = true
		ids := names(60)
		d.fill(ids)
		c := start(t, d, func(c *conjur.Config) { c.RequestBudget = 4 })
		c.Fetch(t.Context(), ids)
		for _, id := range ids[:40] {
			d.change(id, spoil)
		}
		c.Fetch(t.Context(), ids)
		d.log()
		_, _ = c.Changed(t.Context(), ids) // most are not known to be gone yet
		log := d.log()
		if count(log, conjur.KindBatch) == 0 {
			t.Errorf("%s: nothing was asked for together", name)
		}
		for _, a := range log {
			if a.kind == conjur.KindBatch && (len(a.ids) != 20 || a.status != http.StatusOK) {
				t.Errorf("%s: a batch of %d: %d; want one of the 20 that are there", name, len(a.ids), a.status)
			}
		}
	}
}

func TestServerWithoutTheRouteIsAskedOnce(t *testing.T) {
	for _, status := range []int{404, 405, 400, 403, 501, 200} {
		d := newDouble()
		ids := names(20)
		d.fill(ids)
		d.change(ids[3], func(v *doubleVar) { v.missing = true })
		d.change(ids[5], func(v *doubleVar) { v.forbidden = true })
		d.intercept = func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
			if kind == conjur.KindValues {
				w.WriteHeader(status)
			}
			return kind == conjur.KindValues
		}
		c := start(t, d, nil)
		for range 3 {
			answers := c.Fetch(t.Context(), ids)
			wantFound(t, answers[ids[0]], "value of "+ids[0])
		}
		if n := count(d.log(), conjur.KindValues); n != 1 {
			t.Errorf("%d: asked %d times", status, n)
		}
	}
}

func TestRouteThatGoesAwayFallsBack(t *testing.T) {
	d := newDouble()
	d.perValue = true
	ids := names(300)
	d.fill(ids)
	d.change(ids[3], func(v *doubleVar) { v.missing = true })
	c := start(t, d, nil)
	c.Fetch(t.Context(), ids)
	d.with(func(d *double) { d.perValue = false })
	for id, a := range c.Fetch(t.Context(), ids) {
		if id != ids[3] {
			wantFound(t, a, "value of "+id)
		}
	}
}
