package main

import (
	"bytes"
	"context"
	"net/http"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/pipeline"
)

// TestSlowServerIsNotOverrun has a server that needs three intervals for an
// answer: a poll and a fetch may wait beside each other, but no two polls.
func TestSlowServerIsNotOverrun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group("db", "json", "db/password")
	s := newSlowServer(w)
	p := w.start()
	w.awaitProvided()
	eventually(t, "polls that found nothing new", func() bool { return w.server.Counts().NotModified >= 3 })
	s.check()
	p.Stop()
}

// TestOverdrivenPipelineKeepsItsGoroutines runs a pipeline in this process,
// where its goroutines can be counted.
func TestOverdrivenPipelineKeepsItsGoroutines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group("db", "json", "db/password")
	w.group("web", "template", "web/password")
	w.template("web", `{{ secret "password" }}`)
	s := newSlowServer(w)
	cfg, parts := w.config(), pipeline.Parts{Workers: 4, Grace: 10 * time.Second, Log: zap.NewNop()}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	label := pprof.Labels("test", t.Name())
	ended := make(chan error, 1)
	go pprof.Do(ctx, label, func(ctx context.Context) { ended <- pipeline.Run(ctx, cfg, parts) })

	polls := func(n int64) func() bool {
		return func() bool { return w.server.Counts().NotModified >= n }
	}
	w.awaitProvided()
	eventually(t, "the first quiet poll", polls(1))
	before := goroutines(t)
	eventually(t, "more polls", polls(4))
	if after := goroutines(t); after > before+2 { // one poll more or less under way
		t.Errorf("%d goroutines became %d in three polls", before, after)
	}
	s.check()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	eventually(t, "the end of all goroutines", func() bool { return goroutines(t) == 0 })
}

// config is what the world says, as in a process of its own.
func (w *world) config() *config.Config {
	w.t.Helper()
	w.annotate()
	w.env["CONJUR_APPLIANCE_URL"] = w.url
	cfg, _, err := config.Load(config.Sources{
		Annotations: w.path("annotations"), Getenv: func(name string) string { return w.env[name] },
		SecretsDir: w.path("secrets"), TemplatesDir: w.path("templates"), StatusDir: w.path("status"),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return cfg
}

// goroutines counts those that carry the test's label, which goroutines
// inherit from those that start them.
func goroutines(t *testing.T) (n int) {
	t.Helper()
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	label := `"test":"` + t.Name() + `"`
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(stack, label) {
			n += leadingNumber(stack)
		}
	}
	return n
}

// leadingNumber reads "3 @ 0x…", how a profile counts goroutines with the same
// stack; the first has a line of its own before that.
func leadingNumber(stack string) (n int) {
	for line := range strings.Lines(stack) {
		if count, _, ok := strings.Cut(line, " @ "); ok {
			for _, digit := range count {
				n = 10*n + int(digit-'0')
			}
			return n
		}
	}
	return 0
}

// slowServer answers reads of values after three seconds, and counts how many
// requests wait at once.
type slowServer struct {
	w                              *world
	polls, mostPolls, all, mostAll atomic.Int64
}

func newSlowServer(w *world) *slowServer {
	s := &slowServer{w: w}
	w.server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			raise(&s.mostAll, s.all.Add(1))
			defer s.all.Add(-1)
			if r.Header.Get("If-None-Match") != "" {
				raise(&s.mostPolls, s.polls.Add(1))
				defer s.polls.Add(-1)
			}
			if isData(r) {
				wait(r, 3*time.Second)
			}
			next.ServeHTTP(rw, r)
		})
	})
	return s
}

func (s *slowServer) check() {
	s.w.t.Helper()
	if n := s.mostPolls.Load(); n != 1 {
		s.w.t.Errorf("%d polls at once", n)
	}
	if n := s.mostAll.Load(); n > 2 {
		s.w.t.Errorf("%d requests at once", n)
	}
}

// raise makes n at least as high as seen.
func raise(n *atomic.Int64, seen int64) {
	for {
		now := n.Load()
		if now >= seen || n.CompareAndSwap(now, seen) {
			return
		}
	}
}
