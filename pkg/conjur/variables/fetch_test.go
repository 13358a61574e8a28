package variables_test

import (
	"context"
	"errors"
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

// hold makes batches wait until goOn is closed, and tells of each.
func hold(d *conjurtest.Double) (begun chan []string, goOn chan struct{}) {
	begun, goOn = make(chan []string, 10), make(chan struct{})
	d.SetIntercept(func(_ http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
		if kind == conjur.KindBatch {
			begun <- nil
			select {
			case <-goOn:
			case <-r.Context().Done():
			}
		}
		return false
	})
	return begun, goOn
}

func TestFetchesUnderWayMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(30)
		c := serve(t, d, nil)
		begun, goOn := hold(d)
		var wg sync.WaitGroup
		fetchTwo := func(i int) {
			wg.Go(func() {
				answers := c.Fetch(t.Context(), ids[i:i+2])
				for _, id := range ids[i : i+2] {
					wantFound(t, answers[id], "value of "+id)
					answers[id].Value.Wipe() // takes nothing from the others
				}
			})
		}
		fetchTwo(0)
		<-begun
		for i := range 20 {
			fetchTwo(i)
		}
		synctest.Wait()
		close(goOn)
		wg.Wait()
		var sizes []int
		for _, a := range d.Log() {
			if a.Kind == conjur.KindBatch {
				sizes = append(sizes, len(a.IDs))
			}
		}
		// What was found before does not wait for what was not.
		if !slices.Equal(sizes, []int{2, 2, 19}) {
			t.Errorf("batches of %v ids, want 2, and then the same 2 and the 19 others", sizes)
		}
	})
}

func TestFlightGoesOnForThoseWhoStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Fill([]string{"app/a", "app/b", "app/c"})
		c := serve(t, d, nil)
		begun, goOn := hold(d)
		var wg sync.WaitGroup
		run := func(ctx context.Context, id string, check func(variables.Answer)) {
			wg.Go(func() { check(c.Fetch(ctx, []string{id})[id]) })
			synctest.Wait()
		}
		canceled := func(a variables.Answer) {
			if !errors.Is(a.Err, context.Canceled) {
				t.Errorf("got %v", a.Err)
			}
		}
		run(t.Context(), "app/a", func(a variables.Answer) { wantFound(t, a, "value of app/a") })
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		run(ctx, "app/b", canceled) // begins the next flight, and leaves it
		run(t.Context(), "app/c", func(a variables.Answer) { wantFound(t, a, "value of app/c") })
		cancel()
		synctest.Wait()
		close(goOn)
		wg.Wait()
	})
}

// Who gives up does not wait for the flight of others to end.
func TestGivingUpIsPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Fill([]string{"app/a", "app/b"})
		c := serve(t, d, nil)
		begun, goOn := hold(d)
		var wg sync.WaitGroup
		wg.Go(func() { wantFound(t, fetch(t, c, "app/a"), "value of app/a") })
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantUnknown(t, c.Fetch(ctx, []string{"app/b"})["app/b"])
		wantUnknown(t, c.Fetch(ctx, []string{"app/b"})["app/b"])
		close(goOn)
		wg.Wait()
	})
}

func TestFlightWithoutCallersEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Fill([]string{"app/a", "app/b"})
		c := serve(t, d, nil)
		begun, goOn := hold(d)
		caller := func() (leave func()) {
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { wantUnknown(t, c.Fetch(ctx, []string{"app/a"})["app/a"]) })
			synctest.Wait()
			return func() { cancel(); wg.Wait() }
		}
		first, second, third := caller(), caller(), caller() // which flies, and which wait for the next flight
		<-begun
		second()
		third()
		first() // last: its end has the next flight go
		close(goOn)
		synctest.Wait() // for the log of the first, which nobody waits for
		wantFound(t, fetch(t, c, "app/b"), "value of app/b")
		if n := conjurtest.Count(d.Log(), conjur.KindBatch); n != 2 {
			t.Errorf("%d batches; the flight that all had left was flown", n)
		}
	})
}

func TestSlowPollDoesNotDelayAFetch(t *testing.T) {
	d := conjurtest.New()
	d.Fill([]string{"app/a", "app/b"})
	c := start(t, d, nil)
	poll(t, c, []string{"app/a"})
	begun, goOn := make(chan struct{}), make(chan struct{})
	d.SetIntercept(func(_ http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
		if conjurtest.Contains(r, "app/a") {
			begun <- struct{}{}
			<-goOn
		}
		return false
	})
	for range 10 {
		var wg sync.WaitGroup
		wg.Go(func() { poll(t, c, []string{"app/a"}) })
		<-begun
		wantFound(t, fetch(t, c, "app/b"), "value of app/b")
		goOn <- struct{}{}
		wg.Wait()
	}
	if d.Conns > 5 { // 2, unless a request begins before a connection is free again
		t.Errorf("%d connections for two requests at once, want 2", d.Conns)
	}
}

func TestFetchAndPollTogether(t *testing.T) {
	d := conjurtest.New()
	ids := append(conjurtest.Names(40), "with,comma")
	d.Fill(ids)
	c := start(t, d, nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for round := range 30 {
				if i == 0 {
					_, _ = c.Changed(t.Context(), ids)
					d.Change(ids[round], func(v *conjurtest.Variable) { v.Missing = round%2 == 0 })
					continue
				}
				for id, a := range c.Fetch(t.Context(), ids[i*10:]) {
					if a.Verdict == variables.Found && string(a.Value.Bytes()) != "value of "+id {
						t.Errorf("%s: %q", id, a.Value.Bytes())
					}
					a.Value.Wipe()
				}
			}
		})
	}
	wg.Wait()
}

func TestLargeBudgetIsNotSpentOnWhatIsGone(t *testing.T) {
	d := conjurtest.New()
	ids := conjurtest.Names(100)
	d.Fill(ids[:10])
	c := start(t, d, func(config *setup) { config.RequestBudget = 1000 })
	c.Fetch(t.Context(), ids)
	d.Log()
	answers := c.Fetch(t.Context(), ids)
	if n := conjurtest.Count(d.Log(), conjur.KindVariable); n != 32+1 {
		t.Errorf("%d of 90 variables that are gone were asked for again, want 32, and one of them by a newer token", n-1)
	}
	wantFound(t, answers[ids[0]], "value of "+ids[0])
	wantSuspect(t, answers[ids[99]])
}

// Many targets that need the same missing variable cost one request per second.
func TestAnAnswerThatAVariableIsGoneIsUsedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Fill([]string{"app/there"})
		c := serve(t, d, func(c *setup) { c.ConfirmAfter, c.Confirmations = 10*time.Second, 2 })
		time.Sleep(10 * time.Second) // the first fetches are apart
		for _, step := range []struct {
			wait time.Duration
			asks int
		}{{0, 1}, {0, 0}, {time.Second - 1, 0}, {1, 1 + 1 /* by a newer token */}, {9 * time.Second, 1}, {time.Second - 1, 0}} {
			time.Sleep(step.wait)
			d.Log()
			answers := c.Fetch(t.Context(), []string{"app/gone", "app/there"})
			wantFound(t, answers["app/there"], "value of app/there")
			if a := answers["app/gone"]; a.Err == nil {
				t.Errorf("got %v without an error", a.Verdict)
			}
			if n := conjurtest.Count(d.Log(), conjur.KindVariable); n != step.asks {
				t.Errorf("after another %v: %d requests, want %d", step.wait, n, step.asks)
			}
		}
		d.Set("app/gone", "back")
		time.Sleep(time.Nanosecond)
		wantFound(t, fetch(t, c, "app/gone"), "back")
	})
}

func TestAnswersTellWhichValuesCameTogether(t *testing.T) {
	ids := append(conjurtest.Names(8), "with,comma")
	forbid := func(v *conjurtest.Variable) { v.Forbidden = true }
	for name, test := range map[string]struct {
		prepare func(*conjurtest.Double)
		want    [][]string // that came together
	}{
		"a batch":         {func(*conjurtest.Double) {}, [][]string{ids[:8], ids[8:]}},
		"a refused batch": {func(d *conjurtest.Double) { d.Change(ids[0], forbid) }, [][]string{ids[1:2], ids[2:4], ids[4:8], ids[8:]}},
		"without the one that is named": {
			func(d *conjurtest.Double) { d.Change(ids[0], func(v *conjurtest.Variable) { v.Missing = true }) }, [][]string{ids[1:8], ids[8:]},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := conjurtest.New()
			d.Fill(ids)
			test.prepare(d)
			answers := start(t, d, nil).Fetch(t.Context(), ids)
			used := map[int]bool{0: true}
			for _, together := range test.want {
				request := answers[together[0]].Request
				if used[request] {
					t.Errorf("%v have the number %d, which is not theirs", together, request)
				}
				used[request] = true
				for _, id := range together {
					if a := answers[id]; a.Verdict != variables.Found || a.Request != request {
						t.Errorf("%s: %v of request %d, want %d", id, a.Verdict, a.Request, request)
					}
				}
			}
		})
	}
}

func TestAnotherFetchReceivesOnlyWhatHasChanged(t *testing.T) {
	d, ids := conjurtest.Filled(1000)
	c := start(t, d, nil)
	first := c.Fetch(t.Context(), ids)
	n := conjurtest.Count(d.Log(), conjur.KindBatch)
	for round, changed := range []string{"new", "newer"} {
		d.Set(ids[500], changed)
		second := c.Client.Fetch(t.Context(), ids, first)
		variables.Wipe(first)
		full := 0
		for _, a := range d.Log() {
			if a.Status == http.StatusOK {
				full++
			}
		}
		if n < 3 || full != 1 {
			t.Errorf("round %d: %d of %d answers have values, want one of several", round, full, n)
		}
		for i, id := range ids {
			want := "value of " + id
			if i == 500 {
				want = changed
			}
			wantFound(t, second[id], want)
		}
		first = second
	}
}

// Only the fetch that has the earlier values can do without them.
func TestAFetchThatSharesARequestReceivesAllValues(t *testing.T) {
	for _, again := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			d, ids := conjurtest.Filled(3)
			c := serve(t, d, nil)
			first := c.Fetch(t.Context(), ids)
			begun, goOn := hold(d)
			var fetches sync.WaitGroup
			for i := range 3 {
				fetches.Go(func() {
					earlier := map[string]variables.Answer{}
					if i == again {
						earlier = first
					}
					for id, a := range c.Client.Fetch(t.Context(), ids, earlier) {
						wantFound(t, a, "value of "+id)
					}
				})
				synctest.Wait() // the first is under way, and the others wait
			}
			<-begun
			close(goOn)
			fetches.Wait()
		})
	}
}
