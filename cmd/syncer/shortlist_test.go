package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// templateWorld has a file that a template makes of all variables.
func templateWorld(t *testing.T, ids ...string) *world {
	w := newWorld(t)
	w.populate(ids...)
	w.all("g", "template")
	w.template("g", "{{ range .SecretsArray }}{{ .Alias }}={{ .Value }}\n{{ end }}")
	return w
}

// lines is what that file holds for the variables, which are in order.
func (w *world) lines(ids ...string) string {
	var text strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&text, "%s=%s\n", id, w.value[id])
	}
	return text.String()
}

// shorten has the server list one variable only. The function that it returns
// waits until that was asked for a few times.
func (w *world) shorten(id string) (asked func()) {
	w.t.Helper()
	var lists atomic.Int64
	short := answer(200, asJSON, fmt.Sprintf(`[{"id":"%s:variable:%s"}]`, conjurdtest.Account, id))
	w.server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if isList(r) {
				lists.Add(1)
				short(rw, r)
				return
			}
			next.ServeHTTP(rw, r)
		})
	})
	return func() { eventually(w.t, "short lists", func() bool { return lists.Load() >= 4 }) }
}

var three = []string{"app/a", "app/b", "app/c"}

// TestShortListTakesNothingOutOfATemplatesResult: neither at a restart nor at a
// reload. What is revoked goes, with proof.
func TestShortListTakesNothingOutOfATemplatesResult(t *testing.T) {
	t.Parallel()
	begin := map[string]func(w *world) func(){
		"restart": func(w *world) func() {
			p := w.start()
			w.settle()
			p.Stop()
			asked := w.shorten("app/c")
			w.start()
			return asked
		},
		"killed": func(w *world) func() {
			p := w.start()
			w.settle()
			p.Signal(syscall.SIGKILL)
			_ = p.ExitCode()
			asked := w.shorten("app/c")
			w.start()
			return asked
		},
		"reload": func(w *world) func() {
			w.start()
			w.settle()
			asked := w.shorten("app/c")
			w.annotations["log-level"] = "warn"
			w.annotate()
			return asked
		},
	}
	for name, begin := range begin {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := templateWorld(t, three...)
			asked := begin(w)
			asked()
			if w.file("g.out") != w.lines(three...) {
				t.Fatalf("a short list changed the file to %q", w.file("g.out"))
			}
			w.renew("app/a") // not listed, and kept fresh
			eventually(t, "the new value", func() bool { return w.file("g.out") == w.lines(three...) })
			w.deny("app/b")
			eventually(t, "the revoked value gone", func() bool { return w.file("g.out") == w.lines("app/a", "app/c") })
		})
	}
}

func TestShortListTakesNothingOutOfATemplatesResultInAnInitContainer(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"kept", "lost"} {
		t.Run("status folder "+status, func(t *testing.T) {
			t.Parallel()
			w := templateWorld(t, three...)
			w.oneShot("init", 30)
			w.start().Exit(0)
			if status == "lost" { // no volume of its own
				if err := os.RemoveAll(w.path("status")); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(w.path("status"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			before := w.look()
			w.shorten("app/c")
			w.start().Exit(0)
			if got := w.file("g.out"); got != w.lines(three...) {
				t.Errorf("a short list changed the file to %q", got)
			}
			if path := w.path("secrets", "g.out"); w.look()[path] != before[path] {
				t.Error("the file was touched")
			}

			w.deny("app/b")
			w.start().Exit(0)
			if got := w.file("g.out"); got != w.lines("app/a", "app/c") {
				t.Errorf("after the proof the file is %q", got)
			}
		})
	}
}

// TestWhatIsRememberedOfAFileProvesNothing: it is in a folder that belongs to
// the application too.
func TestWhatIsRememberedOfAFileProvesNothing(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"nothing":     os.Remove,
		"garbage":     func(path string) error { return os.WriteFile(path, []byte("\x00["), 0o600) },
		"other ids":   func(path string) error { return os.WriteFile(path, []byte(`["../x","app/none",""]`), 0o600) },
		"a link":      func(path string) error { return relink(path, "/dev/zero") },
		"a huge file": func(path string) error { return os.Truncate(path, 1<<40) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := templateWorld(t, three...)
			p := w.start()
			w.settle()
			p.Stop()
			records, _ := filepath.Glob(w.path("secrets", ".syncer-variables-*"))
			if len(records) != 1 {
				t.Fatalf("records %q, want one", records)
			}
			if err := put(records[0]); err != nil {
				t.Fatal(err)
			}
			w.start()
			w.renew("app/b")
			eventually(t, "the new value", func() bool { return w.file("g.out") == w.lines(three...) })
		})
	}
}

func relink(path, target string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// TestARecordGoesWithItsFile: and with the wildcard.
func TestARecordGoesWithItsFile(t *testing.T) {
	t.Parallel()
	w := templateWorld(t, three...)
	w.start()
	w.settle()
	records := func() int {
		names, _ := filepath.Glob(w.path("secrets", ".syncer-*"))
		return len(names)
	}
	if records() != 1 {
		t.Fatalf("%d records, want one", records())
	}
	w.annotations["secret-file-path.g"] = "other.txt"
	w.annotate()
	eventually(t, "the file at its new path, alone", func() bool {
		return w.file("other.txt") == w.lines(three...) && !w.exists("secrets", "g.out") && records() == 1
	})
	w.annotations["conjur-secrets.g"] = "- app/a: app/a\n- app/b: app/b\n- app/c: app/c\n"
	w.annotate()
	eventually(t, "no record", func() bool { return records() == 0 })
	if got := w.file("other.txt"); got != w.lines(three...) {
		t.Errorf("the file is %q", got)
	}
}

// TestManyThatMayNotBeRead has a host that sees much more than it may read.
func TestManyThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]conjurdtest.Option{"own": nil, "genuine": {conjurdtest.Strict()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options...)
			w.oneShot("init", 5)
			ids := many(300)
			w.populate(ids...)
			var readable []string
			for i, id := range ids {
				if i%3 == 0 {
					w.privilege("!deny", id)
					w.server.Policy(fmt.Sprintf("- !permit { role: !host app, privileges: [read], resource: !variable %q }\n", id))
					continue
				}
				readable = append(readable, id)
			}
			w.all("g", "json")
			w.start().Exit(0)
			if !w.holds("g.json", readable) {
				t.Error("g.json does not hold just what may be read")
			}
		})
	}
}
