package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// TestShortListTakesNothingOutOfATemplatesResult: not even after a kill. What is
// revoked goes, with proof.
func TestShortListTakesNothingOutOfATemplatesResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.populate("app/a", "app/b", "app/c")
	w.all("g", "template")
	w.template("g", "{{ range .SecretsArray }}{{ .Alias }}={{ .Value }}\n{{ end }}")
	lines := func(ids ...string) string {
		var text strings.Builder
		for _, id := range ids {
			fmt.Fprintf(&text, "%s=%s\n", id, w.Value[id])
		}
		return text.String()
	}
	p := w.start()
	w.settle()
	p.Signal(syscall.SIGKILL)
	_ = p.ExitCode()

	var lists atomic.Int64
	short := answer(200, asJSON, fmt.Sprintf(`[{"id":"%s:variable:app/c"}]`, conjurdtest.Account))
	w.Server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if isList(r) {
				lists.Add(1)
				short(rw, r)
				return
			}
			next.ServeHTTP(rw, r)
		})
	})
	w.start()
	eventually(t, "short lists", func() bool { return lists.Load() >= 4 })
	if got := w.file("g.out"); got != lines("app/a", "app/b", "app/c") {
		t.Fatalf("a short list changed the file to %q", got)
	}
	w.Renew("app/a") // not listed, and kept fresh
	eventually(t, "the new value", func() bool { return w.file("g.out") == lines("app/a", "app/b", "app/c") })
	w.Deny("app/b")
	eventually(t, "the revoked value gone", func() bool { return w.file("g.out") == lines("app/a", "app/c") })
}
