package status_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/health/status"
)

// TestOverviewShowsWhatThereIs: certificates and Pods that nobody asks have a place
// where there are some.
func TestOverviewShowsWhatThereIs(t *testing.T) {
	now := time.Now()
	s := status.Status{At: now, Lanes: []status.Lane{{Name: "default"}}, Targets: []status.Target{{Name: "file/db", State: status.Fresh}}}
	lines := func() string {
		t.Helper()
		server := httptest.NewServer(&status.Handler{Look: func() status.Status { return s }})
		defer server.Close()
		var out strings.Builder
		if err := (status.Overview{URL: server.URL, All: true, Out: &out}).Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := lines(); strings.Contains(got, "EXPIRES") || strings.Contains(got, "SET") {
		t.Errorf("without either:\n%s", got)
	}
	s.Targets = append(s.Targets,
		status.Target{Name: "file/crt", State: status.Fresh, Expires: now.Add(13*24*time.Hour + time.Minute)},
		status.Target{Name: "file/old", State: status.Fresh, Expires: now.Add(-time.Hour)})
	s.Rotations = []status.Rotation{{Set: "jwt", Unasked: "shop/job-x"}, {Set: "mac", Waits: "the Pods", Unasked: "shop/job-y"}}
	got := strings.Join(strings.Fields(lines()), " ")
	for _, want := range []string{
		"CHANGED EXPIRES WHAT", "file/db - - -", "file/crt - - in 13d", "file/old - - expired",
		"jwt - not asked: shop/job-x", "mac - the Pods; not asked: shop/job-y",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}

// TestBoundsOfTimes: a time is shown in the largest unit of which it has two.
func TestBoundsOfTimes(t *testing.T) {
	now := time.Now()
	for d, want := range map[time.Duration]string{
		-1: "expired", 0: "expired", 1: "in 0s",
		2*time.Minute - 1: "in 119s", 2 * time.Minute: "in 2m", 2*time.Hour - 1: "in 119m", 2 * time.Hour: "in 2h",
		48*time.Hour - 1: "in 47h", 48 * time.Hour: "in 2d", 72*time.Hour - 1: "in 2d",
	} {
		s := status.Status{At: now, Lanes: []status.Lane{{}}, Targets: []status.Target{{Name: "file/crt", State: status.Fresh, Expires: now.Add(d)}}}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(s)
		}))
		var out strings.Builder
		err := (status.Overview{URL: server.URL, All: true, Out: &out}).Once(t.Context())
		server.Close()
		if text := out.String(); err != nil || !strings.HasSuffix(text, " "+want+"\n") {
			t.Errorf("%v ahead: %v\n%s", d, err, text)
		}
	}
}

// TestOverviewOfAProcessThatKnowsNoTarget: neither a replica on standby nor one that has
// just started may look as if everything were fresh.
func TestOverviewOfAProcessThatKnowsNoTarget(t *testing.T) {
	for want, s := range map[string]status.Status{
		"kubectl exec syncer-7f9c-x2 ": {At: time.Now(), Standby: "syncer-7f9c-x2_1_1795800877449510654"},
		"has not begun its work":       {At: time.Now()},
		status.ErrNotFresh.Error():     {At: time.Now(), Lanes: []status.Lane{{}}, Targets: []status.Target{{State: status.Waiting}}},
	} {
		server := httptest.NewServer(&status.Handler{Look: func() status.Status { return s }})
		defer server.Close()
		var out strings.Builder
		err := status.Overview{URL: server.URL, Out: &out}.Once(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || out.Len() == 0 || strings.Contains(out.String(), "STATE") != (len(s.Targets) > 0) {
			t.Errorf("got %v after %q, want %q", err, out.String(), want)
		}
	}
}

func TestOverviewShowsRestartsInPlace(t *testing.T) {
	const restart = "Restarts in place: 2; the next is due at 2026-11-28T12:00:00Z"
	server := httptest.NewServer(&status.Handler{Look: func() status.Status {
		return status.Status{At: time.Now(), Restart: restart, Lanes: []status.Lane{{}}, Targets: []status.Target{{State: status.Fresh}}}
	}})
	defer server.Close()
	var out strings.Builder
	if err := (status.Overview{URL: server.URL, Out: &out}).Once(t.Context()); err != nil || out.String() != "1 target, 1 fresh\n"+restart+"\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}
