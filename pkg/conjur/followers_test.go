package conjur_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/conjur"
)

// followers has connections lead to one of two servers in turn, of which the
// second lags behind: it knows the variables by the values that it is given. The
// first connection leads to the first of them for 0, to the second for 1.
func followers(d *double, behind map[string]*doubleVar, first int) {
	lagging := newDouble()
	lagging.tokens, lagging.vars = d.tokens, behind
	conns := map[string]int{}
	d.intercept = func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		if _, known := conns[r.RemoteAddr]; !known {
			conns[r.RemoteAddr] = len(conns) + first
		}
		if kind == conjur.KindAuthenticate || conns[r.RemoteAddr]%2 == 0 {
			return false
		}
		var ids []string
		for _, full := range strings.Split(r.URL.Query().Get("variable_ids"), ",") {
			ids = append(ids, strings.TrimPrefix(full, account+":variable:"))
		}
		lagging.route(w, r, kind, ids, nil)
		return true
	}
}

// What one server has not got yet another has: each look at what seems to be
// gone goes over a connection of its own, which may lead to the other.
func TestFollowerThatLacksAVariable(t *testing.T) {
	for first := range 2 {
		d := newDouble()
		ids := names(4)
		d.fill(ids)
		behind := map[string]*doubleVar{}
		for _, id := range ids[1:] {
			behind[id] = &doubleVar{value: "value of " + id}
		}
		followers(d, behind, first)
		c := start(t, d, nil)
		for range 20 {
			changed, _ := c.Changed(t.Context(), ids)
			for _, id := range changed {
				if a := fetch(t, c, id); a.Verdict == conjur.Gone {
					t.Fatal(a.Err)
				}
			}
			for id, a := range c.Fetch(t.Context(), ids) {
				if a.Verdict == conjur.Gone {
					t.Fatalf("%s: %v", id, a.Err)
				}
			}
		}
	}
}

// TestProofIsToldOnce: what is gone for good is said when that is known, with
// what it means, and not again; what is many in one line.
func TestProofIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, logs := observer.New(zap.InfoLevel)
		d := newDouble()
		ids := names(60)
		d.fill(ids)
		for _, id := range ids[:15] {
			d.change(id, func(v *doubleVar) { v.missing = true })
		}
		d.change(ids[20], func(v *doubleVar) { v.forbidden = true })
		c := serve(t, d, func(c *conjur.Config) { c.Grace, c.Logger = 10*time.Second, zap.New(logger) })
		for range 12 {
			_, _ = c.Changed(t.Context(), ids)
			c.Fetch(t.Context(), ids)
			time.Sleep(5 * time.Second)
		}
		told := map[string]int64{}
		for _, e := range logs.FilterMessageSnippet("Proven to be gone").All() {
			fields := e.ContextMap()
			told[fields["reason"].(string)] += fields["count"].(int64)
			if n := len(fields["variables"].([]any)); n > 10 {
				t.Errorf("%d names in a line", n)
			}
		}
		if told["missing"] != 15 || told["forbidden"] != 1 || logs.FilterMessageSnippet("Proven to be gone").Len() > 6 {
			t.Errorf("%v in %d lines", told, logs.Len())
		}
	})
}
