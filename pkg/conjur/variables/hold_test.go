package variables_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
)

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
		wantGone(t, a, variables.Missing)
		if gone, ok := errors.AsType[*variables.GoneError](a.Err); ok && gone.Held.Round(every) != holdTime {
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
		"back":        func(h *held) { h.d.Fill(h.ids) },
		"outage":      func(h *held) { h.d.With(func(d *conjurtest.Double) { d.Intercept = outage }) },
		"no identity": func(h *held) { h.d.With(func(d *conjurtest.Double) { d.Intercept = refuseLogins }) },
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
						if a := fetch(t, h.c, id); a.Verdict == variables.Gone {
							t.Errorf("%s: %v", id, a.Err)
						}
					}
				}
			})
		})
	}
}

func outage(w http.ResponseWriter, _ *http.Request, _ conjur.Kind) bool {
	conjurtest.Bare(w, http.StatusBadGateway)
	return true
}

func TestReturnEndsAHold(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		h.missing(h.ids...)
		h.polls()
		h.polls()
		h.wantEvents("began 10/10")
		h.d.Fill(h.ids)
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
			h.d.Fill(h.ids[i : i+1])
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
		h.d.Fill(h.ids[2:6])
		h.polls()
		h.missing(h.ids[9])
		h.polls()
		h.polls(h.ids[9])
		h.polls()
		h.wantHeld(h.ids[0], 2, 10)
		h.wantEvents("began 6/10")
	})
}

// A wait of which nobody was told leaves no trace in the next hold.
func TestHoldHasItsWholeTime(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[0])
		h.polls()
		h.d.With(func(d *conjurtest.Double) {
			d.Intercept = func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
				if kind == conjur.KindBatch {
					conjurtest.JSON(w, http.StatusInternalServerError, `{}`)
				}
				return kind == conjur.KindBatch
			}
		})
		wantSuspect(t, fetch(t, h.c, h.ids[0])) // nothing is known of the others since
		h.d.SetIntercept(nil)
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

// When it turns out that they are gone too, they have not been for long, maybe.
func TestHoldBeginsAnewWhenItIsSure(t *testing.T) {
	withBrake(t, 10, nil, func(t *testing.T, h *held) {
		h.missing(h.ids[0])
		h.ids[0] += ",odd"
		h.d.With(func(d *conjurtest.Double) {
			d.Intercept = func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
				if kind == conjur.KindBatch {
					conjurtest.JSON(w, http.StatusInternalServerError, `{}`)
				}
				return kind == conjur.KindBatch
			}
		})
		for range 15 {
			h.polls()
		}
		h.wantEvents("began 1/10")
		h.missing(h.ids...)
		h.d.SetIntercept(nil)
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
