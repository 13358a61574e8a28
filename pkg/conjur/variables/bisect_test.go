package variables_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
)

func TestOneMissingLeavesTheOthers304(t *testing.T) {
	d, ids := conjurtest.Filled(100)
	d.Change(ids[42], func(v *conjurtest.Variable) { v.Missing = true })
	c := start(t, d, nil)
	for id, a := range c.Fetch(t.Context(), ids) {
		if id != ids[42] {
			wantFound(t, a, "value of "+id)
		}
	}
	poll(t, c, ids, ids[42])
	d.Log()
	for range 3 {
		poll(t, c, ids)
		for _, a := range d.Log() {
			if a.Kind == conjur.KindBatch && (a.Status != http.StatusNotModified || len(a.IDs) != 99) {
				t.Errorf("batch of %d: %d", len(a.IDs), a.Status)
			}
		}
	}
}

func TestOneForbiddenIsFoundByHalving(t *testing.T) {
	d, ids := conjurtest.Filled(100)
	c := start(t, d, nil)
	poll(t, c, ids)
	d.Change(ids[99], func(v *conjurtest.Variable) { v.Forbidden = true })
	d.Log()
	poll(t, c, ids)
	if log := d.Log(); len(log) > 13+3 { // three see to it that a check's no means something
		t.Errorf("%d requests to find one of 100", len(log))
	}
	poll(t, c, ids, ids[99])
	for range 3 { // the pieces become one chunk again
		d.Log()
		poll(t, c, ids)
	}
	log := d.Log()
	for _, a := range log {
		if a.Kind == conjur.KindBatch && a.Status != http.StatusNotModified {
			t.Errorf("batch of %d: %d", len(a.IDs), a.Status)
		}
	}
	if n := conjurtest.Count(log, conjur.KindBatch); n > 3 {
		t.Errorf("%d batches for 99 variables", n)
	}
}

func TestManyForbiddenStayWithinTheBudget(t *testing.T) {
	d, ids := conjurtest.Filled(2000)
	for _, id := range ids {
		d.Change(id, func(v *conjurtest.Variable) { v.Forbidden = true })
	}
	c := start(t, d, func(c *setup) { c.Brake.Disabled = true })
	for round := range 20 {
		_, err := c.Changed(t.Context(), ids)
		if !errors.Is(err, variables.ErrBudget) {
			t.Errorf("round %d: %v", round, err)
		}
		// One for each of at most 7 chunks, 32 of the budget, and what a proof
		// that has begun may need beyond it.
		if n := len(d.Log()); n > 7+32+3 {
			t.Errorf("round %d: %d requests", round, n)
		}
	}
	for range 20 {
		answers := c.Fetch(t.Context(), ids[:40])
		if n := len(d.Log()); n > 1+32+3+3 { // and the list has three pages
			t.Errorf("fetch: %d requests", n)
		}
		for id, a := range answers {
			if a.Verdict == variables.Found || a.Err == nil {
				t.Errorf("%s: %v", id, a.Verdict)
			}
		}
	}
	for _, a := range c.Fetch(t.Context(), ids[:40]) {
		wantGone(t, a, variables.Forbidden)
	}
	d.Fill(ids) // all rights are back: seen at once where no proof was under way
	d.Log()
	for range 3 {
		_, _ = c.Changed(t.Context(), ids)
	}
	for id, a := range c.Fetch(t.Context(), ids[1500:]) {
		wantFound(t, a, "value of "+id)
	}
}

func TestProgressOfNarrowingIsKept(t *testing.T) {
	d, ids := conjurtest.Filled(200)
	for i := 0; i < 200; i += 10 {
		d.Change(ids[i], func(v *conjurtest.Variable) { v.Forbidden = true })
	}
	c := start(t, d, nil)
	for round := 0; ; round++ {
		if round == 30 {
			t.Fatal("20 forbidden of 200 are not found in 30 polls")
		}
		if _, err := c.Changed(t.Context(), ids); err == nil {
			break
		}
	}
}

// A page of a proxy is no reason to ask for less.
func TestPageIsNotHalved(t *testing.T) {
	for _, status := range []int{403, 404, 500} {
		d, ids := conjurtest.Filled(100)
		d.Intercept = func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
			if kind == conjur.KindBatch {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "<html>")
			}
			return kind == conjur.KindBatch
		}
		c := start(t, d, nil)
		if _, err := c.Changed(t.Context(), ids); err == nil {
			t.Errorf("%d: no error", status)
		}
		if n := conjurtest.Count(d.Log(), conjur.KindBatch); n != 1 {
			t.Errorf("%d: %d requests", status, n)
		}
	}
}

// A server that answers 500 to everything is not taken for a bad variable.
func TestBare500IsNotHalvedForEver(t *testing.T) {
	d, ids := conjurtest.Filled(200)
	c := start(t, d, nil)
	poll(t, c, ids)
	d.SetIntercept(func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
		conjurtest.Bare(w, http.StatusInternalServerError)
		return true
	})
	d.Log()
	for range 5 {
		if _, err := c.Changed(t.Context(), ids); err == nil {
			t.Error("no error")
		}
		if n := len(d.Log()); n > 6 {
			t.Errorf("%d requests to a server in trouble", n)
		}
	}
	d.SetIntercept(nil)
	poll(t, c, ids)
	if log := d.Log(); len(log) != 1 || log[0].Status != http.StatusNotModified {
		t.Errorf("the chunk was not kept: %d requests", len(log))
	}
}

func TestOneBrokenVariableDoesNotSpoilTheOthers(t *testing.T) {
	d, ids := conjurtest.Filled(50)
	d.Change(ids[30], func(v *conjurtest.Variable) { v.Broken = true })
	c := start(t, d, nil)
	answers := c.Fetch(t.Context(), ids)
	for i, id := range ids {
		if i == 30 {
			wantUnknown(t, answers[id])
			continue
		}
		wantFound(t, answers[id], "value of "+id)
	}
	for range 3 {
		_, _ = c.Changed(t.Context(), ids)
	}
	d.Log()
	_, err := c.Changed(t.Context(), ids)
	if status, ok := errors.AsType[*conjur.StatusError](err); !ok || status.Status != 500 {
		t.Errorf("the broken one is not reported: %v", err)
	}
	for _, a := range d.Log() {
		if a.Kind == conjur.KindBatch && a.Status != http.StatusNotModified {
			t.Errorf("batch of %d: %d", len(a.IDs), a.Status)
		}
	}
}

func TestLongLinesAreHalvedAndTheLimitRemembered(t *testing.T) {
	for _, status := range []int{414, 431, 400} {
		d := conjurtest.New()
		ids := conjurtest.Names(600)
		d.Fill(append(ids, "app/one-more"))
		d.MaxLine, d.Status = 3000, status
		c := start(t, d, nil)
		for id, a := range c.Fetch(t.Context(), ids) {
			wantFound(t, a, "value of "+id)
		}
		refused := 0
		for _, a := range d.Log() {
			if a.Status == status {
				refused++
			}
		}
		if refused == 0 || refused > 2 {
			t.Errorf("%d: %d lines were refused, want one at 8000 and one at 4000 bytes", status, refused)
		}
		poll(t, c, ids) // its chunks are fuller, and may meet the limit once more
		d.Log()
		poll(t, c, append(ids, "app/one-more"))
		for _, a := range d.Log() {
			if a.Status == status {
				t.Errorf("%d: the limit was not remembered", status)
			}
		}
	}
}

func TestRequestLinesStayBelowTheLimit(t *testing.T) {
	d, ids := conjurtest.Filled(2000)
	c := start(t, d, nil)
	poll(t, c, ids)
	log := d.Log()
	for _, a := range log {
		if n := len("GET " + a.Target + " HTTP/1.1"); n > 8000 {
			t.Errorf("a line of %d bytes", n)
		}
	}
	if n := conjurtest.Count(log, conjur.KindBatch); n > 7 {
		t.Errorf("%d batches for 2000 variables", n)
	}
}

// A 400 that is not about length must not leave short lines behind.
func TestBadRequestForOneVariable(t *testing.T) {
	d, ids := conjurtest.Filled(300)
	d.Intercept = func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
		if kind == conjur.KindBatch && conjurtest.Contains(r, ids[100]) {
			conjurtest.Bare(w, http.StatusBadRequest)
			return true
		}
		return false
	}
	c := start(t, d, func(c *setup) { c.RequestBudget = 100 })
	for id, a := range c.Fetch(t.Context(), ids) {
		wantFound(t, a, "value of "+id)
	}
	for range 4 {
		d.Log()
		poll(t, c, ids)
	}
	if n := conjurtest.Count(d.Log(), conjur.KindBatch); n > 3 {
		t.Errorf("%d batches are left over", n)
	}
}
