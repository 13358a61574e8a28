package variables_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/test/length"
)

// The rule: more than the share, and more than the least number.
func TestBrakeTakesMassDisappearance(t *testing.T) {
	for _, c := range []struct {
		of, gone int
		brake    variables.Brake
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
		{of: 10, gone: 10, brake: variables.Brake{Disabled: true}},
		{of: 10, gone: 10, brake: variables.Brake{Share: 1}},
		{of: 10, gone: 9, brake: variables.Brake{Share: 0.9}},
		{of: 10, gone: 10, brake: variables.Brake{Share: 0.9}, held: true},
		{of: 10, gone: 6, brake: variables.Brake{Least: 6}},
		{of: 10, gone: 7, brake: variables.Brake{Least: 6}, held: true},
		{of: 1, gone: 1, brake: variables.Brake{Least: -1}, held: true},
		{of: 2, gone: 1, brake: variables.Brake{Least: -1}},
	} {
		t.Run(fmt.Sprintf("%d of %d, %+v", c.gone, c.of, c.brake), func(t *testing.T) {
			withBrake(t, c.of, func(config *setup) { config.Brake = c.brake }, func(t *testing.T, h *held) {
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

// What comes back while others go makes no hold, though a poll learns of the
// ones that went before the one that came.
func TestExchangeIsNoMass(t *testing.T) {
	withBrake(t, 5, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[:3]...)
		h.polls()
		h.d.Fill(h.ids[2:3])
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
		h.d.Fill(h.ids[2:3])
		h.missing(h.ids[3])
		wantSuspect(t, fetch(t, h.c, h.ids[3]))
		wantSuspect(t, fetch(t, h.c, h.ids[0])) // its proof is complete, but it waits for word of the others
		h.polls(h.ids[0], h.ids[3])
		h.polls(h.ids[1])
		h.wantEvents()
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
			h.d.Fill(h.ids) // before the last look
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
		h.d.Fill(h.ids[:80]) // and those are not forgotten either
		for range 10 {
			_, _ = h.c.Changed(h.Context(), h.ids)
		}
		wantFound(t, fetch(t, h.c, h.ids[0]), "value of "+h.ids[0])
	})
}

var mass = length.Flag("mass", 400, 100, "how many variables there are, of which three quarters are found gone slowly")

// A server that names no culprit, or one at a time, shows how many are gone
// only after many polls. None is called gone before that is known.
func TestSlowlyFoundMassIsHeldToo(t *testing.T) {
	for name, spoil := range map[string]func(*conjurtest.Variable){
		"missing":   func(v *conjurtest.Variable) { v.Missing = true },
		"forbidden": func(v *conjurtest.Variable) { v.Forbidden = true },
	} {
		t.Run(name, func(t *testing.T) {
			many := mass()
			withBrake(t, many, func(c *setup) { c.RequestBudget = many / 20 }, func(t *testing.T, h *held) {
				spoiled := h.ids[:many/4*3]
				for _, id := range spoiled {
					h.d.Change(id, spoil)
				}
				n, _ := h.until(1000)
				if waited := time.Duration(n-1) * every; waited < holdTime+every {
					t.Errorf("the first is gone after %v", waited)
				}
				for range spoiled {
					_, _ = h.c.Changed(t.Context(), h.ids)
					time.Sleep(every)
				}
				if len(h.events) != 2 || h.events[0].State != variables.HoldBegan || h.events[1].State != variables.Passed {
					t.Errorf("events %+v", h.events)
				}
				for _, id := range h.ids {
					if a := fetch(t, h.c, id); (a.Verdict == variables.Gone) != slices.Contains(spoiled, id) {
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
		h.d.With(func(d *conjurtest.Double) {
			d.Intercept = func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
				if kind == conjur.KindBatch {
					conjurtest.JSON(w, http.StatusInternalServerError, `{}`)
				}
				return kind == conjur.KindBatch
			}
		})
		h.ids[0] += ",odd" // asked for by itself, also now
		for range 10 {
			h.polls()
		}
		wantSuspect(t, fetch(t, h.c, h.ids[0]))
		h.d.SetIntercept(nil)
		h.polls(h.ids[0])
		h.wantEvents()
	})
}

// … but not for ever.
func TestGoneDoesNotWaitForEver(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[0])
		for _, id := range h.ids[4:] {
			h.d.Change(id, func(v *conjurtest.Variable) { v.Broken = true })
		}
		n, changed := h.until(100)
		if waited := time.Duration(n-1) * every; waited < holdTime || waited > holdTime+2*every || len(changed) != 1 {
			t.Errorf("%q after %v", changed, waited)
		}
	})
}

// Who adds variables that nobody ever had, by other names each time, delays no
// other's removal.
func TestWhatWasNeverThereTripsNoBrake(t *testing.T) {
	withBrake(t, 4, nil, func(t *testing.T, h *held) {
		for range 12 {
			h.polls()
		}
		own, gone := slices.Clone(h.ids), h.ids[0]
		poll := func(round int) []string {
			ids := slices.Clone(own)
			for i := range 12 {
				ids = append(ids, fmt.Sprintf("mallory/%03d-%02d", round/3, i))
			}
			slices.Sort(ids)
			got, _ := h.c.Changed(h.Context(), ids)
			time.Sleep(every)
			return got
		}
		for round := range 9 {
			poll(round)
		}
		h.missing(gone)
		for round := range 3 {
			if slices.Contains(poll(9+round), gone) {
				h.wantEvents()
				return
			}
		}
		t.Error("the removal is held back")
	})
}

// What an earlier process may have delivered counts, though this one never found it.
func TestWhatWasThereBeforeTheStartTripsTheBrake(t *testing.T) {
	withBrake(t, 4, nil, func(t *testing.T, h *held) {
		h.ids = slices.Concat(h.ids, conjurtest.Names(12)[4:])
		h.polls()
		h.polls()
		h.wantEvents("began 8/12")
	})
}
