package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
	"testing"
)

// refusals has an API server refuse requests for as long as on is set, and counts
// them.
type refusals struct {
	on    atomic.Bool
	count atomic.Int64
	begun context.Context // ends when it begins, and with it what passes
	begin context.CancelFunc
}

// refusing has the processes that are started from now on talk to an API server that
// refuses what it is told to, with a status and a reason.
func (w *world) refusing(code int, reason string, which func(*http.Request) bool) *refusals {
	w.Helper()
	r := &refusals{}
	r.begun, r.begin = context.WithCancel(context.Background())
	w.Cleanup(r.begin)
	w.Cleanup(w.through(func(proxy *httputil.ReverseProxy) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, request *http.Request) {
			if !r.on.Load() || !which(request) {
				ctx, cancel := context.WithCancel(request.Context())
				defer cancel()
				if r.begun.Err() == nil && request.URL.Query().Get("watch") == "true" {
					defer context.AfterFunc(r.begun, cancel)()
				}
				proxy.ServeHTTP(rw, request.WithContext(ctx))
				return
			}
			r.count.Add(1)
			rw.Header().Set("Content-Type", "application/json")
			rw.Header().Set("Retry-After", "1")
			rw.WriteHeader(code)
			_, _ = fmt.Fprintf(rw, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":%q,"code":%d}`, reason, code)
		})
	}))
	return r
}

// TestAnAPIServerThatRefusesIsNotPressed: one that has too much to do, and one that
// has dropped the history that a watch asks for. What changed meanwhile is delivered
// when it answers again.
func TestAnAPIServerThatRefusesIsNotPressed(t *testing.T) {
	t.Parallel()
	isWatch := func(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }
	for _, test := range []struct {
		code   int
		reason string
		which  func(*http.Request) bool
	}{
		{http.StatusTooManyRequests, "TooManyRequests", func(*http.Request) bool { return true }},
		{http.StatusGone, "Expired", isWatch},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			const secrets, polls = 20, 10
			w := newWorld(t)
			// A Lease that is refused must last longer than the polls, which a busy machine delays.
			w.settings = append(w.settings, "leaderElection: {leaseDuration: 5m}")
			w.Variables("a", "b")
			for i := range secrets {
				w.secret(fmt.Sprintf("s%02d", i), map[string]string{"v": "a"})
			}
			server := w.refusing(test.code, test.reason, test.which)
			p := w.start()
			delivered := func() {
				t.Helper()
				for i := range secrets {
					w.awaitData(fmt.Sprintf("s%02d", i), map[string]string{"v": w.Value["a"]})
				}
			}
			delivered()
			server.on.Store(true)
			server.begin()
			w.secret("new", map[string]string{"v": "b"})
			w.Renew("a")
			w.polls(polls)
			if n := server.count.Load(); n > 5*secrets*polls {
				t.Errorf("%d requests were refused in %d polls", n, polls)
			} else {
				t.Logf("%d requests were refused in %d polls", n, polls)
			}
			p.MustRun()
			server.on.Store(false)
			delivered()
			w.awaitData("new", map[string]string{"v": w.Value["b"]})
			p.Stop()
		})
	}
}
