package cluster

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// shorten has the server list one variable only. The function that it returns
// waits until that was asked for a few times.
func (w *world) shorten(id string) (asked func()) {
	w.t.Helper()
	var lists atomic.Int64
	w.server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/resources/") || r.URL.Query().Has("check") {
				next.ServeHTTP(rw, r)
				return
			}
			lists.Add(1)
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, `[{"id":"%s:variable:%s"}]`, conjurdtest.Account, id)
		})
	})
	return func() { eventually(w.t, "short lists", func() bool { return lists.Load() >= 4 }) }
}

// wildSecret makes the Secret "all", which has all variables by its map and in
// a template, under the policy of the chart.
func wildSecret(t *testing.T, values string) *world {
	w := newWorld(t)
	w.police(values)
	w.variables("app/a", "app/b", "app c")
	w.secret("all", map[string]string{"*": "*"}, func(s *corev1.Secret) {
		s.Annotations["conjur.org/conjur-secrets.cfg"] = "*"
		s.Annotations["conjur.org/secret-file-template.cfg"] = "{{ range .SecretsArray }}{{ .Alias }}={{ .Value }};{{ end }}"
	})
	return w
}

// awaitAllOf waits until that Secret has these variables, in both ways, and
// no others.
func (w *world) awaitAllOf(ids ...string) {
	w.t.Helper()
	want, cfg := map[string]string{"app.a": "", "app.b": "", "app.c": ""}, ""
	for _, id := range ids {
		want[strings.NewReplacer("/", ".", " ", ".").Replace(id)] = w.value[id]
		cfg += id + "=" + w.value[id] + ";"
	}
	want["cfg"] = cfg
	w.awaitData("all", want)
}

// TestShortListTakesNothingOutOfASecret: neither at a restart, nor in a new
// configuration, nor where a Job is run again. What is revoked goes, with proof.
func TestShortListTakesNothingOutOfASecret(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w *world) (asked func()){
		"restart": func(w *world) func() {
			p := w.start()
			w.awaitAllOf("app c", "app/a", "app/b")
			p.Stop()
			asked := w.shorten("app/b")
			w.start()
			return asked
		},
		"reload": func(w *world) func() {
			w.start()
			w.awaitAllOf("app c", "app/a", "app/b")
			asked := w.shorten("app/b")
			settings := strings.Join(append(w.settings, "log: {level: warn}"), "\n") + "\n"
			next := filepath.Join(w.dir, "next.yaml")
			if err := os.WriteFile(next, []byte(settings), 0o600); err != nil {
				w.t.Fatal(err)
			}
			if err := os.Rename(next, filepath.Join(w.dir, "config-1.yaml")); err != nil {
				w.t.Fatal(err)
			}
			return asked
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := wildSecret(t, chartValues)
			begin(w)()
			if s := w.read("all"); len(s.Data) != 5 || string(s.Data["app.a"]) != w.value["app/a"] {
				t.Fatalf("a short list left %d data keys", len(s.Data))
			}
			w.awaitAllOf("app c", "app/a", "app/b")
			w.renew("app c") // not listed, and kept fresh
			w.awaitAllOf("app c", "app/a", "app/b")
			w.revoke("app c")
			w.awaitAllOf("app/a", "app/b")
		})
	}
}

func TestShortListTakesNothingOutOfASecretInAnInitContainer(t *testing.T) {
	t.Parallel()
	w := wildSecret(t, chartValues)
	w.oneShot("30", "all")
	w.env["CONTAINER_MODE"] = "init"
	run := func() {
		t.Helper()
		if code := w.start().ExitCode(); code != 0 {
			t.Fatalf("status %d", code)
		}
	}
	run()
	w.awaitAllOf("app c", "app/a", "app/b")
	before := w.read("all").ResourceVersion
	w.shorten("app/b")
	run()
	w.awaitAllOf("app c", "app/a", "app/b")
	if now := w.read("all").ResourceVersion; now != before {
		t.Error("the Secret was written though nothing had changed")
	}
	w.revoke("app c")
	run()
	w.awaitAllOf("app/a", "app/b")
}
