package main

import (
	"net/http"
	"sync"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/pkg/pipeline"
)

func TestSignalEndsSidecar(t *testing.T) {
	t.Parallel()
	for s, refresh := range map[syscall.Signal]string{syscall.SIGTERM: "1s", syscall.SIGINT: ""} {
		t.Run(s.String()+" "+refresh, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if refresh == "" {
				delete(w.Annotations, "secrets-refresh-interval")
			}
			w.Group("db", "json", "db/password")
			p := w.start()
			w.awaitProvided()
			before := w.look()
			p.Signal(s)
			p.Exit(0)
			w.untouched(before)
		})
	}
}

// TestSignalEndsTheFetchInFlight stops a process that waits for a server that
// does not answer: to a login, or to a question for values. It ends within
// patience, though its grace is far longer.
func TestSignalEndsTheFetchInFlight(t *testing.T) {
	t.Parallel()
	for mode, c := range map[string]struct {
		held   func(*http.Request) bool
		status int
	}{"init": {isLogin, 1}, "application": {isData, 1}, "sidecar": {isData, 0}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Env["CONJUR_HTTP_TIMEOUT"] = "600"
			if mode != "sidecar" {
				w.oneShot(mode, 5)
			}
			w.Group("db", "json", "db/password")
			asked, answer := w.hold(c.held)
			defer answer()
			p := w.start("--grace", "10m")
			<-asked
			p.Signal(syscall.SIGTERM)
			p.Exit(c.status)
			if w.exists("secrets", "db.json") {
				t.Error("a file without an answer")
			}
			if said := p.Lines("Failing", "cancel"); len(said) > 0 {
				t.Errorf("the end of the process is called a failure: %q", said)
			}
		})
	}
}

// hold keeps the requests that held names waiting until answer is called; asked is
// closed when the first has come.
func (w *world) hold(held func(*http.Request) bool) (asked chan struct{}, answer func()) {
	asked, answered := make(chan struct{}), make(chan struct{})
	var first, last sync.Once
	answer = func() { last.Do(func() { close(answered) }) }
	w.Cleanup(answer)
	w.Server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if held(r) {
				first.Do(func() { close(asked) })
				select {
				case <-answered:
				case <-r.Context().Done():
				}
			}
			next.ServeHTTP(rw, r)
		})
	})
	return asked, answer
}

// TestSignalInTheLastSyncAfterARemoval: a process that ends for a removal, and
// brings all else up to date first, ends at once when it is told to, as one
// that has removed something.
func TestSignalInTheLastSyncAfterARemoval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Env["CONJUR_HTTP_TIMEOUT"] = "600"
	w.Group("revoked", "json", "revoked/password")
	w.Group("db", "json", "db/user", "db/password")
	p := w.start()
	w.settle()
	asked, answer := w.hold(func(r *http.Request) bool { return isData(r) && !w.exists("secrets", "revoked.json") })
	defer answer()
	w.Deny("revoked/password")
	<-asked
	p.MustRun()
	p.Signal(syscall.SIGTERM)
	p.Exit(1)
	if len(p.Lines("Ending with an error", pipeline.ErrRevoked.Error())) != 1 {
		t.Error("the log does not say why it ended")
	}
	w.await("db.json", w.Value["db/password"])
	w.awaitUpdated()
}
