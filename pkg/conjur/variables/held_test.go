package variables_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
)

const (
	every    = 30 * time.Second // between two polls
	holdTime = 10 * time.Minute
)

// held is a client whose clock is not the real one, and that is polled.
type held struct {
	*testing.T
	d      *conjurtest.Double
	c      client
	ids    []string
	events []variables.HoldEvent
	logs   *observer.ObservedLogs
}

// withBrake makes a client of n variables that are there.
func withBrake(t *testing.T, n int, adapt func(*setup), f func(t *testing.T, h *held)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &held{T: t, d: conjurtest.New(), ids: conjurtest.Names(n)}
		core, logs := observer.New(zap.WarnLevel)
		h.logs = logs
		h.d.Fill(h.ids)
		h.d.Latency = time.Millisecond
		h.c = serve(t, h.d, func(c *setup) {
			c.Logger = zap.New(core)
			c.Listener = h
			if adapt != nil {
				adapt(c)
			}
		})
		h.polls()
		f(t, h)
	})
}

// Held implements variables.Listener.
func (h *held) Held(e variables.HoldEvent) { h.events = append(h.events, e) }

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
		h.d.Change(id, func(v *conjurtest.Variable) { v.Missing = true })
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
	e, ok := errors.AsType[*variables.HeldError](a.Err)
	if a.Verdict != variables.Unknown || !ok || e.Variables != n || e.Of != of || e.Suspicion.Variable != id {
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
	if n := h.logs.FilterMessageSnippet("Removal is").Len(); n != len(want) {
		h.Errorf("%d lines for %d events: %v", n, len(want), h.logs.All())
	}
	h.logs.TakeAll()
	h.events = nil
}
