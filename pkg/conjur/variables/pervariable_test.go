package variables_test

import (
	"net/http"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
)

func TestServerThatAnswersPerVariableIsAskedThatWay(t *testing.T) {
	d := conjurtest.New()
	d.PerValue = true
	ids := conjurtest.Names(600)
	d.Fill(ids)
	d.Set(ids[1], "\xff\xfe binary")
	c := start(t, d, nil)
	c.Fetch(t.Context(), ids)
	if n := conjurtest.Count(d.Log(), conjur.KindValues); n != 0 {
		t.Errorf("%d requests to find out what nobody needs to know", n)
	}
	d.Change(ids[10], func(v *conjurtest.Variable) { v.Missing = true })
	d.Change(ids[20], func(v *conjurtest.Variable) { v.Forbidden = true })
	want := func(id string, a variables.Answer, old bool) {
		t.Helper()
		switch {
		case id == ids[1]:
			wantFound(t, a, "\xff\xfe binary")
		case id == ids[10] && old:
			wantGone(t, a, variables.Missing)
		case id == ids[20] && old:
			wantGone(t, a, variables.Forbidden)
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
		log := d.Log()
		if batches := conjurtest.Count(log, conjur.KindBatch); round > 0 && batches != 0 || conjurtest.Count(log, conjur.KindValues) == 0 {
			t.Errorf("round %d: %d batches, %d per variable", round, batches, conjurtest.Count(log, conjur.KindValues))
		}
	}
	poll(t, c, ids, ids[10], ids[20])
	poll(t, c, ids)
	if log := d.Log(); conjurtest.Count(log, conjur.KindValues) != 0 {
		t.Error("a poll must ask conditionally")
	}
}

// What the route says there is no value of leaves the shared question at once,
// also what there was no budget to ask more about, and does not spoil it at the
// next poll.
func TestWhatTheRouteLacksLeavesTheBatch(t *testing.T) {
	for name, spoil := range map[string]func(v *conjurtest.Variable){
		"missing":   func(v *conjurtest.Variable) { v.Missing = true },
		"forbidden": func(v *conjurtest.Variable) { v.Forbidden = true },
	} {
		d := conjurtest.New()
		d.PerValue = true
		ids := conjurtest.Names(60)
		d.Fill(ids)
		c := start(t, d, func(c *setup) { c.RequestBudget = 4 })
		c.Fetch(t.Context(), ids)
		for _, id := range ids[:40] {
			d.Change(id, spoil)
		}
		c.Fetch(t.Context(), ids)
		d.Log()
		_, _ = c.Changed(t.Context(), ids) // most are not known to be gone yet
		log := d.Log()
		if conjurtest.Count(log, conjur.KindBatch) == 0 {
			t.Errorf("%s: nothing was asked for together", name)
		}
		for _, a := range log {
			if a.Kind == conjur.KindBatch && (len(a.IDs) != 20 || a.Status != http.StatusOK) {
				t.Errorf("%s: a batch of %d: %d; want one of the 20 that are there", name, len(a.IDs), a.Status)
			}
		}
	}
}

func TestServerWithoutTheRouteIsAskedOnce(t *testing.T) {
	for _, status := range []int{404, 405, 400, 403, 501, 200} {
		d, ids := conjurtest.Filled(20)
		d.Change(ids[3], func(v *conjurtest.Variable) { v.Missing = true })
		d.Change(ids[5], func(v *conjurtest.Variable) { v.Forbidden = true })
		d.Intercept = func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
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
		if n := conjurtest.Count(d.Log(), conjur.KindValues); n != 1 {
			t.Errorf("%d: asked %d times", status, n)
		}
	}
}

func TestRouteThatGoesAwayFallsBack(t *testing.T) {
	d := conjurtest.New()
	d.PerValue = true
	ids := conjurtest.Names(300)
	d.Fill(ids)
	d.Change(ids[3], func(v *conjurtest.Variable) { v.Missing = true })
	c := start(t, d, nil)
	c.Fetch(t.Context(), ids)
	d.With(func(d *conjurtest.Double) { d.PerValue = false })
	for id, a := range c.Fetch(t.Context(), ids) {
		if id != ids[3] {
			wantFound(t, a, "value of "+id)
		}
	}
}

// A server that is down is asked no more in a call, whichever route it answered on.
func TestRouteThatIsDownEndsTheCall(t *testing.T) {
	d := conjurtest.New()
	d.PerValue = true
	ids := conjurtest.Names(3)
	d.Fill(ids)
	d.Change(ids[0], func(v *conjurtest.Variable) { v.Missing = true })
	c := start(t, d, nil)
	c.Fetch(t.Context(), ids)
	d.SetIntercept(func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
		if kind == conjur.KindValues {
			conjurtest.Bare(w, http.StatusServiceUnavailable)
		}
		return kind == conjur.KindValues
	})
	d.Log()
	for _, a := range c.Fetch(t.Context(), ids[1:]) {
		wantUnknown(t, a)
	}
	if n := len(d.Log()); n != 1 {
		t.Errorf("%d requests, want one", n)
	}
}
