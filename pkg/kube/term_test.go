package kube

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWritesEndBeforeAnotherCanLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h, term, leads, ended := &heldLease{}, &term{}, make(chan context.Context, 10), make(chan struct{})
		go func() {
			defer close(ended)
			election := Election{Namespace: "n", Name: "syncer", Identity: "one"}
			if err := elect(ctx, h, election, slowCandidate{leads, time.Hour}, term); err != nil { // as with a long --grace
				t.Error(err)
			}
		}()
		lead := <-leads
		time.Sleep(time.Minute)
		over, err := term.checkTerm()
		if err != nil {
			t.Fatalf("in the term: %v", err)
		}
		h.set(func(h *heldLease) { h.hang = -1 })
		<-lead.Done()
		if _, err := term.checkTerm(); err != nil {
			t.Errorf("no time to write what was read: %v", err)
		}
		<-over.Done()
		if left := time.Until(h.renewed.Add(defaultLeaseDuration)); left < defaultRetryPeriod {
			t.Errorf("writes end %v before another can lead", left)
		}
		if _, err := term.checkTerm(); !errors.Is(err, errNoTerm) {
			t.Errorf("after the term: %v", err)
		}
		cancel()
		<-ended
	})
}

func TestAGuardDecidesOnWritesInItsNamespace(t *testing.T) {
	refused, asked := errors.New("no"), ""
	guarded := term{guard: func(_ context.Context, namespace string) error { asked = namespace; return refused }}
	for _, c := range []struct{ method, url, asked string }{
		{http.MethodPatch, "https://k/api/v1/namespaces/a/secrets/b", "a"},
		{http.MethodPost, "https://k/prefix/apis/apps/v1/namespaces/c/deployments", "c"},
		{http.MethodGet, "https://k/api/v1/namespaces/a/secrets/b", ""},
		{http.MethodPost, "https://k/api/v1/namespaces/a/events", ""},
		{http.MethodPut, "https://k/apis/coordination.k8s.io/v1/namespaces/a/leases/b", ""},
		{http.MethodPost, "https://k/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", ""},
	} {
		asked = ""
		r, err := http.NewRequestWithContext(t.Context(), c.method, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (bounded{&trip{}, &guarded}).RoundTrip(r); asked != c.asked || errors.Is(err, refused) != (c.asked != "") {
			t.Errorf("%s %s: asked about %q: %v", c.method, c.url, asked, err)
		}
	}
}

// TestNoTimerIsNeeded: after a suspension others may run before the timers do.
func TestNoTimerIsNeeded(t *testing.T) {
	var term term
	term.contest()
	term.extend(time.Now().Add(time.Hour))
	term.timer.Stop()
	term.until = time.Now()
	if _, err := term.checkTerm(); !errors.Is(err, errNoTerm) {
		t.Errorf("error %v, want %v", err, errNoTerm)
	}
	term.extend(time.Now().Add(time.Hour))
	defer term.end()
	if _, err := term.checkTerm(); err != nil {
		t.Errorf("with the Lease again: %v", err)
	}
}

func TestOnlyWritesAreBoundToTheTerm(t *testing.T) {
	var term term
	do := func(method, url string) (sent context.Context, err error) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		var next trip
		_, err = bounded{&next, &term}.RoundTrip(r)
		return next.ctx, err
	}
	for _, c := range []struct {
		state  string
		change func()
		writes bool
	}{
		{"no election", func() {}, true},
		{"contesting", term.contest, false},
		{"alone", func() { term.extend(time.Time{}) }, true},
		{"over", term.end, false},
		{"leading", func() { term.extend(time.Now().Add(time.Hour)) }, true},
	} {
		c.change()
		if _, err := do(http.MethodGet, "https://k/api/v1/namespaces/a/secrets/b"); err != nil {
			t.Errorf("%s: a read: %v", c.state, err)
		}
		if _, err := do(http.MethodPut, "https://k/prefix/apis/coordination.k8s.io/v1/namespaces/a/leases/b"); err != nil {
			t.Errorf("%s: the Lease: %v", c.state, err)
		}
		for _, method := range []string{http.MethodPatch, http.MethodPut, http.MethodPost, http.MethodDelete} {
			if sent, err := do(method, "https://k/api/v1/namespaces/a/secrets/coordination.k8s.io"); (err == nil) != c.writes || (sent != nil) != c.writes {
				t.Errorf("%s: %s: %v, sent: %v", c.state, method, err, sent != nil)
			}
		}
	}
	sent, err := do(http.MethodPatch, "https://k/api/v1/namespaces/a/secrets/b")
	if err != nil {
		t.Fatal(err)
	}
	term.end()
	<-sent.Done()
}
