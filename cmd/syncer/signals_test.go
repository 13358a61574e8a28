package main

import (
	"net/http"
	"sync"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/pkg/notify"
)

func TestSignalEndsSidecar(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		for _, refresh := range []string{"1s", ""} {
			t.Run(s.String()+" "+refresh, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				if refresh == "" {
					delete(w.annotations, "secrets-refresh-interval")
				}
				w.group("db", "json", "db/password")
				p := w.start()
				w.awaitProvided()
				before := w.look()
				p.Signal(s)
				p.Exit(0)
				w.untouched(before)
			})
		}
	}
}

// TestSignalWaitsForTheSyncInFlight stops a process that has asked for values:
// it writes them, and tells the application, before it ends.
func TestSignalWaitsForTheSyncInFlight(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"application", "sidecar"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if mode == "application" {
				w.oneShot(mode, 0)
			}
			w.group("db", "json", "db/password")
			asked, answer := w.holdData()
			p := w.start()
			<-asked
			p.Signal(syscall.SIGTERM)
			awaitSignal(t, p)
			answer()
			p.Exit(0)
			w.await("db.json", w.value["db/password"])
			if !w.exists("status", notify.ProvidedFile) {
				t.Errorf("no %s", notify.ProvidedFile)
			}
		})
	}
}

// TestGraceEndsTheSyncInFlight stops a process that would wait for ever.
func TestGraceEndsTheSyncInFlight(t *testing.T) {
	t.Parallel()
	for mode, status := range map[string]int{"application": 1, "sidecar": 0} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if mode == "application" {
				w.oneShot(mode, 0)
			}
			w.group("db", "json", "db/password")
			asked, answer := w.holdData()
			defer answer()
			p := w.start("--grace", "100ms")
			<-asked
			p.Signal(syscall.SIGTERM)
			p.Exit(status)
			if w.exists("secrets", "db.json") {
				t.Error("a file without an answer")
			}
		})
	}
}

// holdData keeps requests for values waiting until answer is called; asked is
// closed when the first has come.
func (w *world) holdData() (asked chan struct{}, answer func()) {
	asked, answered := make(chan struct{}), make(chan struct{})
	var first, last sync.Once
	answer = func() { last.Do(func() { close(answered) }) }
	w.t.Cleanup(answer)
	w.server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if isData(r) {
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
