package conjur_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/conjur"
)

const (
	every    = 30 * time.Second // between two polls
	holdTime = 10 * time.Minute
)

// held is a client whose clock is not the real one, and that is polled.
type held struct {
	*testing.T
	d      *double
	c      *conjur.Client
	ids    []string
	events []conjur.HoldEvent
	logs   *observer.ObservedLogs
}

// withBrake makes a client of n variables that are there.
func withBrake(t *testing.T, n int, adapt func(*conjur.Config), f func(t *testing.T, h *held)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &held{T: t, d: newDouble(), ids: names(n)}
		core, logs := observer.New(zap.WarnLevel)
		h.logs = logs
		h.d.fill(h.ids)
		h.d.latency = time.Millisecond
		h.c = serve(t, h.d, func(c *conjur.Config) {
			c.Logger = zap.New(core)
			c.Held = func(e conjur.HoldEvent) { h.events = append(h.events, e) }
			if adapt != nil {
				adapt(c)
			}
		})
		h.polls()
		f(t, h)
	})
}

// polls polls once and checks which variables are reported.
func (h *held) polls(want ...string) {
	h.Helper()
	got, _ := h.c.Changed(h.Context(), h.ids)
	if !slices.Equal(got, want) {
		h.Errorf("changed: %q, want %q", got, want)
	}
	time.Sleep(every)
}

func (h *held) missing(ids ...string) {
	for _, id := range ids {
		h.d.change(id, func(v *doubleVar) { v.missing = true })
	}
}

// until counts the polls until one reports something; at most most.
func (h *held) until(most int) (n int, changed []string) {
	h.Helper()
	for n = 1; n <= most; n++ {
		if changed, _ = h.c.Changed(h.Context(), h.ids); len(changed) > 0 {
			return n, changed
		}
		time.Sleep(every)
	}
	return n, nil
}

// wantHeld checks what a fetch says of a variable that is held.
func (h *held) wantHeld(id string, n, of int) {
	h.Helper()
	a := fetch(h.T, h.c, id)
	e, ok := errors.AsType[*conjur.HeldError](a.Err)
	if a.Verdict != conjur.Unknown || !ok || e.Variables != n || e.Of != of || e.Suspicion.Variable != id {
		h.Errorf("%s is %v (%v), want it held with %d of %d", id, a.Verdict, a.Err, n, of)
	}
}

// wantEvents checks the events since the last time, and that each is logged.
func (h *held) wantEvents(want ...string) {
	h.Helper()
	var got []string
	for _, e := range h.events {
		got = append(got, fmt.Sprintf("%s %d/%d", e.State, e.Gone, e.Of))
		if len(e.Variables) != min(e.Gone, 10) || e.Until.Sub(e.Since) != holdTime {
			h.Errorf("%+v", e)
		}
	}
	if !slices.Equal(got, want) {
		h.Errorf("events %q, want %q", got, want)
	}
	if n := h.logs.Len(); n != len(want) {
		h.Errorf("%d lines for %d events: %v", n, len(want), h.logs.All())
	}
	h.logs.TakeAll()
	h.events = nil
}

// The rule: more than the share, and more than the least number.
func TestBrakeTakesMassDisappearance(t *testing.T) {
	for _, c := range []struct {
		of, gone int
		brake    conjur.Brake
		held     bool
	}{
		{of: 10, gone: 1},
		{of: 10, gone: 5},
		{of: 10, gone: 6, held: true},
		{of: 10, gone: 10, held: true},
		{of: 1, gone: 1},
		{of: 3, gone: 3},
		{of: 4, gone: 3},
		{of: 4, gone: 4, held: true},
		{of: 5, gone: 3},
		{of: 5, gone: 4, held: true},
		{of: 10, gone: 10, brake: conjur.Brake{Disabled: true}},
		{of: 10, gone: 10, brake: conjur.Brake{Share: 1}},
		{of: 10, gone: 9, brake: conjur.Brake{Share: 0.9}},
		{of: 10, gone: 10, brake: conjur.Brake{Share: 0.9}, held: true},
		{of: 10, gone: 6, brake: conjur.Brake{Least: 6}},
		{of: 10, gone: 7, brake: conjur.Brake{Least: 6}, held: true},
		{of: 1, gone: 1, brake: conjur.Brake{Least: -1}, held: true},
		{of: 2, gone: 1, brake: conjur.Brake{Least: -1}},
	} {
		t.Run(fmt.Sprintf("%d of %d, %+v", c.gone, c.of, c.brake), func(t *testing.T) {
			withBrake(t, c.of, func(config *conjur.Config) { config.Brake = c.brake }, func(t *testing.T, h *held) {
				h.missing(h.ids[:c.gone]...)
				h.polls()
				if !c.held {
					h.polls(h.ids[:c.gone]...)
					h.wantEvents()
					return
				}
				h.polls()
				h.wantEvents(fmt.Sprintf("began %d/%d", c.gone, c.of))
			})
		})
	}
}

func TestHoldPassesAndTheProofStands(t *testing.T) {
	withBrake(t, 20, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[:12]...)
		h.polls()
		h.polls()
		h.wantEvents("began 12/20")
		h.wantHeld(h.ids[3], 12, 20)
		for range int(holdTime/every) - 1 {
			h.polls()
		}
		h.wantEvents()
		h.polls(h.ids[:12]...)
		h.wantEvents("passed 12/20")
		a := fetch(t, h.c, h.ids[3])
		wantGone(t, a, conjur.Missing)
		if gone, ok := errors.AsType[*conjur.GoneError](a.Err); ok && gone.Held.Round(every) != holdTime {
			t.Errorf("held for %v", gone.Held)
		}
		h.missing(h.ids[12:14]...) // of the eight that are left: no mass
		h.polls()
		h.polls(h.ids[12:14]...)
		h.missing(h.ids[14:]...)
		h.polls()
		h.polls()
		h.wantEvents("began 6/6")
	})
}

// At the end of a hold each variable is looked at once more, by a new token.
func TestHoldEndsWithOneMoreLook(t *testing.T) {
	for name, spoil := range map[string]func(h *held){
		"back":        func(h *held) { h.d.fill(h.ids) },
		"outage":      func(h *held) { h.d.with(func(d *double) { d.intercept = outage }) },
		"no identity": func(h *held) { h.d.with(func(d *double) { d.intercept = refuseLogins }) },
	} {
		t.Run(name, func(t *testing.T) {
			withBrake(t, 6, nil, func(t *testing.T, h *held) {
				h.missing(h.ids...)
				for range int(holdTime/every) + 1 {
					h.polls()
				}
				spoil(h)
				for range 5 {
					h.polls()
					for _, id := range h.ids {
						if a := fetch(t, h.c, id); a.Verdict == conjur.Gone {
							t.Errorf("%s: %v", id, a.Err)
						}
					}
				}
			})
		})
	}
}

func outage(w http.ResponseWriter, _ *http.Request, _ conjur.Kind) bool {
	empty(w, http.StatusBadGateway)
	return true
}

func TestReturnEndsAHold(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		h.missing(h.ids...)
		h.polls()
		h.polls()
		h.wantEvents("began 10/10")
		h.d.fill(h.ids)
		h.polls()
		h.polls()
		h.wantEvents("returned 0/10")
		wantFound(t, fetch(t, h.c, h.ids[0]), "value of "+h.ids[0])
		h.missing(h.ids[0]) // by itself: at its own pace
		h.polls()
		h.polls(h.ids[0])
		h.wantEvents()
	})
}

// Values are set one after the other when a policy is repaired.
func TestWhatHasNotReturnedStaysHeld(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		h.missing(h.ids...)
		h.polls()
		h.polls()
		for i := range h.ids {
			h.d.fill(h.ids[i : i+1])
			h.polls()
		}
		h.polls()
		h.wantEvents("began 10/10", "returned 0/10")
	})
}

// What goes while a hold is on goes with it, and does not lengthen it.
func TestHoldTakesInWhatGoesMeanwhile(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[:6]...)
		for range 6 {
			h.polls()
		}
		h.missing(h.ids[6])
		h.polls()
		h.polls()
		h.wantHeld(h.ids[6], 7, 10)
		for range 13 {
			h.polls()
		}
		h.polls(h.ids[:7]...)
		h.wantEvents("began 6/10", "passed 7/10")
	})
}

// What goes when a hold is about to end may be another mistake. A few are let
// go with the others, many get a hold of their own.
func TestEndOfAHoldIsNoOpening(t *testing.T) {
	for _, many := range []bool{false, true} {
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			withBrake(t, 12, nil, func(t *testing.T, h *held) {
				h.missing(h.ids[:7]...)
				for range 18 {
					h.polls()
				}
				late := h.ids[7:9]
				if many {
					late = h.ids[7:]
				}
				h.missing(late...)
				for range 3 {
					h.polls()
				}
				if !many {
					h.polls(h.ids[:9]...)
					h.wantEvents("began 7/12", "passed 9/12")
					return
				}
				h.polls(h.ids[:7]...)
				h.wantEvents("began 7/12", "passed 12/12", "began 5/5")
			})
		})
	}
}

// One that goes by itself, while a few are still held, does so at its own pace
// and does not set those free.
func TestHoldIsNotEndedBesideIt(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[:6]...)
		h.polls()
		h.polls()
		h.d.fill(h.ids[2:6])
		h.polls()
		h.missing(h.ids[9])
		h.polls()
		h.polls(h.ids[9])
		h.polls()
		h.wantHeld(h.ids[0], 2, 10)
		h.wantEvents("began 6/10")
	})
}

// What comes back while others go makes no hold, though a poll learns of the
// ones that went before the one that came.
func TestExchangeIsNoMass(t *testing.T) {
	withBrake(t, 5, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[:3]...)
		h.polls()
		h.d.fill(h.ids[2:3])
		h.missing(h.ids[3])
		h.polls()
		h.polls(h.ids[0], h.ids[1], h.ids[3])
		h.wantEvents()
	})
}

// Nor does it where fetches learn only of those that went.
func TestFetchOfAFewIsNoMass(t *testing.T) {
	withBrake(t, 5, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[:3]...)
		h.polls()
		h.d.fill(h.ids[2:3])
		h.missing(h.ids[3])
		wantSuspect(t, fetch(t, h.c, h.ids[3]))
		wantSuspect(t, fetch(t, h.c, h.ids[0])) // its proof is complete, but it waits for word of the others
		h.polls(h.ids[0], h.ids[3])
		h.polls(h.ids[1])
		h.wantEvents()
	})
}

// A wait of which nobody was told leaves no trace in the next hold.
func TestHoldHasItsWholeTime(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[0])
		h.polls()
		h.d.with(func(d *double) {
			d.intercept = func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
				if kind == conjur.KindBatch {
					writeJSON(w, http.StatusInternalServerError, `{}`)
				}
				return kind == conjur.KindBatch
			}
		})
		wantSuspect(t, fetch(t, h.c, h.ids[0])) // nothing is known of the others since
		h.d.with(func(d *double) { d.intercept = nil })
		h.polls(h.ids[0])
		for range 4 {
			_, _ = h.c.Changed(h.Context(), h.ids)
			time.Sleep(every)
		}
		h.missing(h.ids[1:]...)
		for range 2 + int(holdTime/every) - 1 {
			h.polls()
		}
		h.polls(h.ids[1:]...)
		h.wantEvents("began 9/9", "passed 9/9")
	})
}

func TestHoldOfWhatIsNoLongerInUseEnds(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[:6]...)
		h.polls()
		h.polls()
		h.ids = h.ids[6:]
		for range 3 {
			h.polls()
		}
		h.wantEvents("began 6/10", "returned 0/10")
	})
}

// What came back after a hold is as if there had been none.
func TestBrakeTakesTheSameAgain(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		for range 2 {
			h.missing(h.ids...)
			for range int(holdTime/every) + 1 {
				h.polls()
			}
			h.d.fill(h.ids) // before the last look
			h.polls()
			h.wantEvents("began 10/10", "passed 10/10")
		}
	})
}

// Many that are long gone do not delay the proof of one more.
func TestProofDoesNotWaitBehindWhatIsGone(t *testing.T) {
	withBrake(t, 200, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[:80]...)
		h.until(10)
		for range 10 {
			_, _ = h.c.Changed(h.Context(), h.ids)
			time.Sleep(every)
		}
		h.missing(h.ids[199])
		h.polls()
		h.polls(h.ids[199])
		h.d.fill(h.ids[:80]) // and those are not forgotten either
		for range 10 {
			_, _ = h.c.Changed(h.Context(), h.ids)
		}
		wantFound(t, fetch(t, h.c, h.ids[0]), "value of "+h.ids[0])
	})
}

// A server that names no culprit, or one at a time, shows how many are gone
// only after many polls. None is called gone before that is known.
func TestSlowlyFoundMassIsHeldToo(t *testing.T) {
	for name, spoil := range map[string]func(*doubleVar){
		"missing":   func(v *doubleVar) { v.missing = true },
		"forbidden": func(v *doubleVar) { v.forbidden = true },
	} {
		t.Run(name, func(t *testing.T) {
			withBrake(t, 400, func(c *conjur.Config) { c.RequestBudget = 20 }, func(t *testing.T, h *held) {
				for _, id := range h.ids[:300] {
					h.d.change(id, spoil)
				}
				n, _ := h.until(1000)
				if waited := time.Duration(n-1) * every; waited < holdTime+every {
					t.Errorf("the first is gone after %v", waited)
				}
				for range 300 {
					_, _ = h.c.Changed(t.Context(), h.ids)
					time.Sleep(every)
				}
				if len(h.events) != 2 || h.events[0].State != conjur.HoldBegan || h.events[1].State != conjur.Passed {
					t.Errorf("events %+v", h.events)
				}
				for _, id := range h.ids {
					if a := fetch(t, h.c, id); (a.Verdict == conjur.Gone) != slices.Contains(h.ids[:300], id) {
						t.Errorf("%s: %v %v", id, a.Verdict, a.Err)
					}
				}
			})
		})
	}
}

// One is gone, and about the others nothing can be known.
func TestGoneWaitsForWordOfTheOthers(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[0])
		h.d.with(func(d *double) {
			d.intercept = func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
				if kind == conjur.KindBatch {
					writeJSON(w, http.StatusInternalServerError, `{}`)
				}
				return kind == conjur.KindBatch
			}
		})
		h.ids[0] += ",odd" // asked for by itself, also now
		for range 10 {
			h.polls()
		}
		wantSuspect(t, fetch(t, h.c, h.ids[0]))
		h.d.with(func(d *double) { d.intercept = nil })
		h.polls(h.ids[0])
		h.wantEvents()
	})
}

// When it turns out that they are gone too, they have not been for long, maybe.
func TestHoldBeginsAnewWhenItIsSure(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[0])
		h.ids[0] += ",odd"
		h.d.with(func(d *double) {
			d.intercept = func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
				if kind == conjur.KindBatch {
					writeJSON(w, http.StatusInternalServerError, `{}`)
				}
				return kind == conjur.KindBatch
			}
		})
		for range 15 {
			h.polls()
		}
		h.wantEvents("began 1/10")
		h.missing(h.ids...)
		h.d.with(func(d *double) { d.intercept = nil })
		for range int(holdTime/every) + 1 {
			if changed, _ := h.c.Changed(h.Context(), h.ids); len(changed) > 0 {
				t.Fatalf("%q before a whole hold was over", changed)
			}
			time.Sleep(every - time.Second)
		}
		h.polls(h.ids...)
		h.wantEvents("began 10/10", "passed 10/10")
	})
}

// … but not for ever.
func TestGoneDoesNotWaitForEver(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[0])
		for _, id := range h.ids[4:] {
			h.d.change(id, func(v *doubleVar) { v.broken = true })
		}
		n, changed := h.until(100)
		if waited := time.Duration(n-1) * every; waited < holdTime || waited > holdTime+2*every || len(changed) != 1 {
			t.Errorf("%q after %v", changed, waited)
		}
	})
}

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
