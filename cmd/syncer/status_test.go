package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	statuspage "github.com/secretsync/syncer/pkg/health/status"
	"github.com/secretsync/syncer/test/proctest"
)

// overseen makes a sidecar that shows its status.
func (w *world) overseen() statuspage.Client {
	w.Annotations["server-address"] = proctest.FreeAddress(w.TB)
	w.Annotations["server-status"] = "true"
	return statuspage.Client{URL: "http://" + w.Annotations["server-address"]}
}

// awaitStatus waits until what is known is so.
func (w *world) awaitStatus(c statuspage.Client, what string, so func(statuspage.Status) bool) (s statuspage.Status) {
	w.Helper()
	eventually(w, what, func() bool {
		var err error
		s, err = c.Get(w.Context())
		return err == nil && so(s)
	})
	if text, _ := json.Marshal(s); w.Leak(string(text)) != "" {
		w.Errorf("a value is in the status: %s", text)
	}
	return s
}

// is reports whether the only target is in a state.
func is(state statuspage.State) func(statuspage.Status) bool {
	return func(s statuspage.Status) bool { return len(s.Targets) == 1 && s.Targets[0].State == state }
}

// ofStatus runs syncer status and returns what it wrote, and how it ended.
func (w *world) ofStatus(c statuspage.Client, args ...string) (out string, code int) {
	w.Helper()
	p := spawn(w, w.Environ(), append([]string{"status", "--url", c.URL}, args...)...)
	code = p.ExitCode()
	w.Silent(p)
	return p.Log(), code
}

func TestStatusShowsWhatATargetWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.overseen()
	w.Annotations["exit-on-revoked"], w.Annotations["removal-grace"] = "false", "4s"
	w.Group("db", "json", "db/password")
	p := w.start()
	s := w.awaitStatus(c, "the target to be fresh", is(statuspage.Fresh))
	if got := s.Targets[0]; got.Name != "file/db" || got.Lane != "default" || got.Changed.IsZero() || got.Error != "" || s.Mode != "sidecar" {
		t.Errorf("got %+v", s)
	}
	if got := s.Targets[0]; got.Place != w.Path("secrets", "db.json") || got.Variables != "db/password" {
		t.Errorf("it is at %q, and has %q", got.Place, got.Variables)
	}
	if l := s.Lanes[0]; l.Login != w.Env["CONJUR_AUTHN_LOGIN"] || l.URL != w.Env["CONJUR_APPLIANCE_URL"] || s.Started.IsZero() {
		t.Errorf("whose: %+v, started %v", l, s.Started)
	}
	proven := s.Targets[0].Proven
	w.awaitStatus(c, "a poll to prove it anew", func(s statuspage.Status) bool { return s.Targets[0].Proven.After(proven) })
	if out, code := w.ofStatus(c); code != 0 || out != "1 target, 1 fresh\n" {
		t.Errorf("status ended with %d: %s", code, out)
	}

	w.Server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if isData(r) {
				http.Error(rw, "", http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(rw, r)
		})
	})
	w.awaitStatus(c, "the target to be stale", is(statuspage.Stale))
	out, code := w.ofStatus(c)
	if code != 1 || !strings.Contains(out, "1 target, 0 fresh") || !strings.Contains(out, "stale") || strings.Contains(out, "\x1b") {
		t.Errorf("status ended with %d: %s", code, out)
	}
	w.Server.Intercept(nil)
	w.awaitStatus(c, "the target to be fresh again", is(statuspage.Fresh))

	w.Deny("db/password")
	w.awaitStatus(c, "proof to be awaited", func(s statuspage.Status) bool {
		return is(statuspage.Doubted)(s) && s.Targets[0].Waits == "proof that variables are gone: db/password"
	})
	s = w.awaitStatus(c, "the variable to be proven gone", is(statuspage.Revoked))
	if got := s.Targets[0]; got.Waits != "the variables to be back" || !strings.Contains(got.Error, "db/password") {
		t.Errorf("got %+v", got)
	}
	p.Stop()
	if out, code := w.ofStatus(c); code != 2 || !strings.Contains(out, "connection refused") {
		t.Errorf("without a process, status ended with %d: %s", code, out)
	}
}

func TestStatusShowsHeldRemovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.overseen()
	ids := []string{"a", "b", "c", "d", "e"}
	w.Group("db", "json", ids...)
	w.start()
	w.awaitStatus(c, "the target to be fresh", is(statuspage.Fresh))
	for _, id := range ids {
		w.Deny(id)
	}
	s := w.awaitStatus(c, "the hold", func(s statuspage.Status) bool { return s.Lanes[0].Held != statuspage.Held{} })
	if h := s.Lanes[0].Held; h.Of != 5 || time.Until(h.Until) > 10*time.Minute {
		t.Errorf("held: %+v", h)
	}
	if got := s.Targets[0]; got.Waits != "the end of the hold on removals: a, b, c, d, e" {
		t.Errorf("got %+v", got)
	}
	if out, code := w.ofStatus(c, "--output", "json"); code != 1 || !json.Valid([]byte(out)) || !strings.HasPrefix(out, "{\n  \"at\": ") {
		t.Errorf("status ended with %d: %s", code, out)
	}
	if out, _ := w.ofStatus(c); !strings.Contains(out, "Removal as default is held back until") {
		t.Errorf("status: %s", out)
	}
}

func TestStatusFollowsWhatHappens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.overseen()
	w.Group("db", "json", "db/password")
	p := w.start()
	w.awaitStatus(c, "the target to be fresh", is(statuspage.Fresh))
	watch := spawnBy(t, (*exec.Cmd).Start, w.Environ(), "status", "--url", c.URL, "--watch", "--all")
	eventually(t, "the first lines", func() bool { return strings.Contains(watch.Log(), "fresh  file/db") })
	w.Server.Intercept(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "", http.StatusServiceUnavailable) })
	})
	eventually(t, "the change", func() bool { return strings.Contains(watch.Log(), "stale  file/db") })
	p.Stop() // although somebody reads the stream
	watch.Exit(2)
}

// TestAnInterruptedWatchEndsWithWhatItShowed: a target that fails is no success.
func TestAnInterruptedWatchEndsWithWhatItShowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.overseen()
	w.Group("db", "json", "db/password")
	w.Annotations["conjur-secrets.bad"] = "- a/"
	p := w.start()
	w.awaitStatus(c, "the target to fail", func(s statuspage.Status) bool {
		return len(s.Targets) == 2 && s.Targets[0].State == statuspage.Failing && s.Targets[1].State == statuspage.Fresh
	})
	watch := spawn(t, w.Environ(), "status", "--url", c.URL, "--watch")
	eventually(t, "the target", func() bool { return strings.Contains(watch.Log(), "file/bad") })
	watch.Signal(syscall.SIGINT)
	watch.Exit(1)
	p.Stop()
}

func TestStatusIsOffUnlessASettingTurnsItOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.overseen()
	delete(w.Annotations, "server-status")
	w.Group("db", "json", "db/password")
	w.start()
	eventually(t, "an answer", func() bool {
		_, err := c.Get(context.Background())
		return err != nil && strings.Contains(err.Error(), "the status page is off there")
	})
}

func TestStatusNamesWhatIsOfTheNode(t *testing.T) {
	t.Parallel()
	w := onNode(t)
	c := w.overseen()
	w.own("apps/user")
	w.start()
	w.awaitStatus(c, "the node's own variable", func(s statuspage.Status) bool {
		return is(statuspage.Fresh)(s) && s.Targets[0].Overrides == "node/n1/apps/user"
	})
}

// TestAVariableThatNeverExistedIsNotRevoked: its first error stays, also after the proof.
func TestAVariableThatNeverExistedIsNotRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/nosuch")
	w.Deny("db/nosuch")
	c := w.overseen()
	p := w.start()
	right := func(s statuspage.Status) bool {
		return is(statuspage.Failing)(s) && strings.HasPrefix(s.Targets[0].Error, "file/db is not delivered: there is no value in Conjur, or none for this identity, for db/nosuch;")
	}
	eventually(t, "the proof", func() bool { return strings.Contains(p.Log(), "Proven to be gone") })
	w.awaitStatus(c, "the first error to stay", right)
	w.awaitStatus(c, "the same without a retry", func(s statuspage.Status) bool {
		return right(s) && s.Targets[0].Waits == "a change of its variables, template or definition"
	})
	p.Stop()
}
