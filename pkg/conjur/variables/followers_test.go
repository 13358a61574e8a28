package variables_test

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
)

// followers has connections lead to one of two servers in turn, of which the
// second lags behind: it knows the variables by the values that it is given. The
// first connection leads to the first of them for 0, to the second for 1.
func followers(d *conjurtest.Double, behind map[string]*conjurtest.Variable, first int) {
	lagging := d.Follower(behind)
	var mu sync.Mutex
	conns := map[any]int{}
	d.Intercept = func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
		mu.Lock()
		defer mu.Unlock()
		conn := conjurtest.ConnOf(r)
		if _, known := conns[conn]; !known {
			conns[conn] = len(conns) + first
		}
		if kind == conjur.KindAuthenticate || conns[conn]%2 == 0 {
			return false
		}
		lagging.Answer(w, r, kind)
		return true
	}
}

// What one server has not got yet another has: each look at what seems to be
// gone goes over a connection of its own, which may lead to the other.
func TestFollowerThatLacksAVariable(t *testing.T) {
	for first := range 2 {
		d, ids := conjurtest.Filled(4)
		behind := map[string]*conjurtest.Variable{}
		for _, id := range ids[1:] {
			behind[id] = &conjurtest.Variable{Value: "value of " + id}
		}
		followers(d, behind, first)
		c := start(t, d, nil)
		for range 20 {
			changed, _ := c.Changed(t.Context(), ids)
			for _, id := range changed {
				if a := fetch(t, c, id); a.Verdict == variables.Gone {
					t.Fatal(a.Err)
				}
			}
			for id, a := range c.Fetch(t.Context(), ids) {
				if a.Verdict == variables.Gone {
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
		d, ids := conjurtest.Filled(60)
		for _, id := range ids[:15] {
			d.Change(id, func(v *conjurtest.Variable) { v.Missing = true })
		}
		d.Change(ids[20], func(v *conjurtest.Variable) { v.Forbidden = true })
		c := serve(t, d, func(c *setup) { c.Grace, c.Logger = 10*time.Second, zap.New(logger) })
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

// reader delivers as a process does: what a poll reports is fetched, and what
// could not be fetched is fetched again.
type reader struct {
	*testing.T
	client   client
	ids      []string
	values   []string // that were delivered, one after the other
	stale    bool
	returned int // times that an earlier value was held back
}

func (r *reader) look() {
	r.Helper()
	changed, err := r.client.Changed(r.Context(), r.ids)
	if err != nil {
		r.Error(err)
	}
	if len(changed) > 0 || r.stale {
		r.read()
	}
}

func (r *reader) read() {
	a := r.client.Fetch(r.Context(), r.ids)[r.ids[0]]
	r.stale = a.Verdict != variables.Found
	if _, held := errors.AsType[*variables.ReturnedError](a.Err); held {
		r.returned++
	}
	if v := string(a.Value.Bytes()); !r.stale && (len(r.values) == 0 || r.values[len(r.values)-1] != v) {
		r.values = append(r.values, v)
	}
}

// A value that comes and goes with the server that answers is delivered once,
// whichever server answers first, and what is right in the end is there soon
// after both agree.
func TestFollowersThatDisagreeDoNotFlap(t *testing.T) {
	const interval = 5 * time.Second
	for first := range 2 {
		for _, single := range []string{"", ",alone"} {
			synctest.Test(t, func(t *testing.T) {
				logger, logs := observer.New(zap.InfoLevel)
				d := conjurtest.New()
				ids := append(conjurtest.Names(3), "app/z"+single)
				slices.Reverse(ids)
				d.Fill(ids)
				behind := map[string]*conjurtest.Variable{}
				for _, id := range ids {
					behind[id] = &conjurtest.Variable{Value: "value of " + id}
				}
				followers(d, behind, first)
				c := serve(t, d, func(c *setup) { c.Steady, c.Logger = 3*interval, zap.New(logger) })
				r := &reader{T: t, client: c, ids: ids}
				r.read()
				for range 5 {
					r.look()
					time.Sleep(interval)
				}
				d.Set(ids[0], "new")
				for range 40 {
					r.look()
					time.Sleep(interval)
					c.Close() // the next connection leads to the other server
				}
				d.With(func(*conjurtest.Double) { behind[ids[0]].Value = "new" })
				for range 13 { // three intervals, or four times that after many changes
					r.look()
					time.Sleep(interval)
				}
				if want := []string{"value of " + ids[0], "new"}; !slices.Equal(r.values, want) {
					t.Errorf("delivered %q, want %q", r.values, want)
				}
				if n := logs.FilterMessageSnippet("earlier value").Len(); n != 1 {
					t.Errorf("told %d times", n)
				}
			})
		}
	}
}

// What was set back on purpose arrives, a while later.
func TestValueThatIsSetBack(t *testing.T) {
	const interval = 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(2)
		c := serve(t, d, func(c *setup) { c.Steady = 3 * interval })
		r := &reader{T: t, client: c, ids: ids}
		r.read()
		step := func(n int, want ...string) {
			t.Helper()
			for range n {
				time.Sleep(interval)
				r.look()
			}
			if !slices.Equal(r.values, want) {
				t.Errorf("delivered %q, want %q", r.values, want)
			}
			if r.values = r.values[len(r.values)-1:]; r.stale {
				t.Error("the target is stale")
			}
		}
		first := "value of " + ids[0]
		step(2, first)
		d.Set(ids[0], "b")
		step(1, first, "b")
		d.Set(ids[0], first)
		step(3, "b")
		step(1, "b", first)
		d.Set(ids[0], "c")
		step(1, first, "c")
		step(3, "c")
		d.Set(ids[0], "b") // which was there longer ago than that
		step(1, "c", "b")
		d.Set(ids[0], "c")
		d.Set(ids[1], "x") // the other one does not wait
		time.Sleep(interval)
		if r.look(); len(r.values) != 1 {
			t.Errorf("delivered %q", r.values)
		}
		if v := fetch(t, c, ids[1]); string(v.Value.Bytes()) != "x" {
			t.Errorf("%v", v.Err)
		}
	})
}

// The same holds for an answer that has no values, because an earlier fetch had them.
func TestAnUnchangedEarlierValueIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(2)
		c := serve(t, d, func(c *setup) { c.Steady = time.Hour })
		first := c.Fetch(t.Context(), ids)
		d.Set(ids[0], "new")
		_, _ = c.Changed(t.Context(), ids)
		d.Set(ids[0], "value of "+ids[0])
		second := c.Client.Fetch(t.Context(), ids, first)
		wantUnknown(t, second[ids[0]])
		if _, held := errors.AsType[*variables.ReturnedError](second[ids[0]].Err); !held {
			t.Error(second[ids[0]].Err)
		}
		wantFound(t, second[ids[1]], "value of "+ids[1])
	})
}
