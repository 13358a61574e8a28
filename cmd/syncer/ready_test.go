package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/proctest"
)

// ready asks the readiness probe of a process; 0 is no answer.
func (w *world) ready() (status int, body string) {
	w.Helper()
	answer, err := http.Get("http://" + w.Annotations["server-address"] + "/readyz")
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// awaitReady waits until the probe answers so, and its body has the texts.
// Before, it must not have answered that the process is ready.
func (w *world) awaitReady(status int, texts ...string) {
	w.Helper()
	eventually(w, "the readiness that is due", func() bool {
		got, body := w.ready()
		if got == http.StatusOK && status != http.StatusOK {
			w.Fatalf("ready: %s", body)
		}
		for _, text := range texts {
			if !strings.Contains(body, text) {
				return false
			}
		}
		return got == status
	})
}

// probed makes a sidecar that answers probes.
func (w *world) probed() {
	w.Annotations["server-address"] = proctest.FreeAddress(w.TB)
	w.Annotations["log-level"] = "warn"
}

// TestReadyIsDelivered has a server that takes log-ins and serves no values.
func TestReadyIsDelivered(t *testing.T) {
	t.Parallel()
	for name, refresh := range map[string]string{"polling": "1s", "once": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.probed()
			w.Annotations["secrets-refresh-interval"] = refresh
			if refresh == "" {
				delete(w.Annotations, "secrets-refresh-interval")
			}
			w.Group("db", "json", "db/password")
			w.Group("web", "json", "web/password")
			w.Server.Intercept(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if isData(r) {
						http.Error(rw, "", http.StatusServiceUnavailable)
						return
					}
					next.ServeHTTP(rw, r)
				})
			})
			p := w.start()
			w.awaitReady(http.StatusServiceUnavailable, "file/db", "file/web", "503")
			w.Server.Intercept(nil)
			w.awaitReady(http.StatusOK, "ok")
			if w.file("db.json") == "" || w.file("web.json") == "" {
				t.Error("ready without a file")
			}
			p.Stop()
		})
	}
}

// TestReadyDespiteATargetWithAReasonOfItsOwn: what only its definition, or the
// removal of a variable, explains is not the process's readiness.
func TestReadyDespiteATargetWithAReasonOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed()
	w.Group("db", "json", "db/password")
	w.Group("bad", "template", "bad/password")
	w.template("bad", `{{ secret "password" | b64dec }}`)
	w.Annotations["conjur-secrets.gone"] = "- none: gone/none\n"
	w.Annotations["removal-grace"] = "1s"
	p := w.start()
	w.awaitReady(http.StatusOK, "ok", "file/bad", "file/gone", "gone/none")
	if _, body := w.ready(); strings.Contains(body, "file/db") || w.Leak(body) != "" {
		t.Errorf("the probe says %s", body)
	}
	p.Stop()
}

// TestNotReadyWithAnInvalidGroup: all others are delivered, and a correction of
// the annotations or of the template file makes the process ready.
func TestNotReadyWithAnInvalidGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed()
	for _, name := range []string{"db", "format", "file", "late"} {
		w.Group(name, "json", name+"/password")
	}
	w.Annotations["secret-file-format.format"] = "toml"
	w.Annotations["secret-file-format.file"], w.Annotations["secret-file-format.late"] = "template", "template"
	w.template("file", `{{ secret "nobody" }}`)
	p := w.start()
	w.awaitReady(http.StatusServiceUnavailable, "3 of 4 targets", "file/format", "toml", "file/file", "nobody", "file/late", "late.tpl")
	w.await("db.json", w.Value["db/password"])

	// A change of another group is taken up meanwhile.
	w.Annotations["secret-file-format.db"] = "yaml"
	w.Annotate()
	w.await("db.yaml", w.Value["db/password"])
	w.template("file", `{{ secret "password" }}`)
	w.template("late", `{{ secret "password" }}`)
	w.awaitReady(http.StatusServiceUnavailable, "1 of 4 targets", "file/format")
	w.Annotations["secret-file-format.format"] = "json"
	w.Annotate()
	w.awaitReady(http.StatusOK)
	w.await("file.out", w.Value["file/password"])
	p.Stop()
}

// TestReadyWhenTriedIfSetSo keeps what ready meant in earlier versions.
func TestReadyWhenTriedIfSetSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed()
	w.Annotations["health-ready"] = "tried"
	w.Group("db", "json", "db/password")
	w.Annotations["conjur-secrets.gone"] = "- none: gone/none\n"
	w.Annotations["removal-confirmations"] = "1000" // it is not known to be gone during the test
	p := w.start()
	eventually(t, "ready", func() bool { status, _ := w.ready(); return status == http.StatusOK })
	p.Stop()
	delete(w.Annotations, "health-ready")
	p = w.start()
	w.awaitReady(http.StatusServiceUnavailable, "1 of 2 targets", "file/gone")
	p.Stop()
}

// TestNotReadyBeforeATargetWasTried: nothing is known of it, and the probe says
// of which.
func TestNotReadyBeforeATargetWasTried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed()
	w.Group("db", "json", "db/password")
	w.Server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if isData(r) {
				<-r.Context().Done()
			}
			next.ServeHTTP(rw, r)
		})
	})
	p := w.start()
	w.awaitReady(http.StatusServiceUnavailable, "1 of 1 targets of the identity default have not been synced yet: file/db")
	p.Stop()
}

// TestNotReadyWhenPollsAreTooOld: what was delivered stays, and whether it is
// what Conjur has is not known.
func TestNotReadyWhenPollsAreTooOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed()
	w.Annotations["health-freshness"] = "2s"
	w.Group("db", "json", "db/password")
	p := w.start()
	eventually(t, "ready", func() bool { status, _ := w.ready(); return status == http.StatusOK })
	w.Server.Intercept(func(http.Handler) http.Handler { return answer(http.StatusServiceUnavailable, asHTML, page) })
	eventually(t, "no longer ready", func() bool {
		status, body := w.ready()
		return status == http.StatusServiceUnavailable && strings.Contains(body, "the identity default has not been able to poll Conjur for")
	})
	w.Server.Intercept(nil)
	eventually(t, "ready again", func() bool { status, _ := w.ready(); return status == http.StatusOK })
	p.Stop()
}

// TestTheProbeNamesTwentyTargets of many, with the number of the others.
func TestTheProbeNamesTwentyTargets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed()
	for i := range 25 {
		w.Group(fmt.Sprintf("g%02d", i), "json", fmt.Sprintf("g%02d/password", i))
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
	p := w.start()
	w.awaitReady(http.StatusServiceUnavailable, "file/g00", "file/g19", "503", "and 5 more")
	if _, body := w.ready(); strings.Contains(body, "file/g20") || strings.Count(body, "\n") != 22 {
		t.Errorf("the probe says %s", body)
	}
	p.Stop()
}
