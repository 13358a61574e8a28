package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// refusing is a gateway that answers questions for values with 403 and those
// for resources with 404, both without a body, and lets all else pass. It counts
// the questions.
func refusing(values *atomic.Int64) conjurdtest.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/secrets"):
				values.Add(1)
				rw.WriteHeader(http.StatusForbidden)
			case strings.HasPrefix(r.URL.Path, "/resources"):
				rw.WriteHeader(http.StatusNotFound)
			default:
				next.ServeHTTP(rw, r)
			}
		})
	}
}

// TestGatewayThatRefusesEverything is no reason to remove anything, be there few
// variables or so many that the brake would hold for a while.
func TestGatewayThatRefusesEverything(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, conjurdtest.Strict())
			w.annotations["removal-brake-hold"] = "1s"
			for i := range n {
				w.group(fmt.Sprintf("g%d", i), "json", fmt.Sprintf("app/v%d", i))
			}
			p := w.start()
			w.settle()
			before := w.look()
			var asked atomic.Int64
			w.server.Intercept(refusing(&asked))
			eventually(t, "what was seen in the log", func() bool { return len(p.Lines("any gateway may say")) > 0 })
			seen := asked.Load()
			eventually(t, "many polls", func() bool { return asked.Load() >= seen+int64(6*n) })
			w.untouched(before)
			w.server.Intercept(nil)
			w.await("g0.json", w.renew("app/v0"))
			p.Stop()
		})
	}
}
