package clouds

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// application signs requests without pause, with the key that it read last.
type application struct {
	using  atomic.Pointer[string] // the id of the version
	signed atomic.Int64
}

// run signs until ctx ends, and returns what was rejected. It reads its key again after a
// while, or, if it is stubborn, only when the key was rejected.
func (p *application) run(ctx context.Context, s *site, d double, stubborn bool) (rejected []string) {
	for ctx.Err() == nil {
		doc, err := s.Look(context.Background())
		if err != nil {
			return append(rejected, err.Error())
		}
		v, _ := doc.Primary()
		p.using.Store(&v.ID)
		again := time.Now().Add(100 * time.Millisecond)
		for good := true; ctx.Err() == nil && good && (stubborn || time.Now().Before(again)); p.signed.Add(1) {
			if err := d.signIn(v); err != nil {
				good, rejected = false, append(rejected, v.ID+": "+err.Error())
			}
		}
	}
	return rejected
}

// open is a gate that is always open, as if nobody had to be asked.
type open struct{}

func (open) Introduced(context.Context, *versions.Document, versions.Version, []rotation.Shown) rotation.Answer {
	return rotation.Answer{Open: true}
}

func (open) Left(context.Context, *versions.Document, versions.Version, []rotation.Shown) rotation.Answer {
	return rotation.Answer{Open: true}
}

// soon asks again at once.
type soon struct{ rotation.Consumers }

func (s soon) Left(ctx context.Context, doc *versions.Document, v versions.Version, shown []rotation.Shown) rotation.Answer {
	a := s.Consumers.Left(ctx, doc, v, shown)
	a.Until = time.Now().Add(20 * time.Millisecond)
	return a
}

// live rotates keys while four applications sign with them.
func live(t *testing.T, start func(testing.TB, func(http.Handler) http.Handler) double, rotations int, forced bool) (signed int64, rejected []string) {
	s, d := newSite(t), start(t, nil)
	d.Lag = lag
	config := brisk(s.reader)
	stop := run(t, s.engine(s.reader, d.keys(config), nil, nil))
	s.Idle("")
	stop()

	all := make([]*application, 4)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var mu sync.Mutex
	for i := range all {
		all[i] = &application{}
		running.Go(func() {
			said := all[i].run(ctx, s, d, forced)
			mu.Lock()
			defer mu.Unlock()
			rejected = append(rejected, said...)
		})
	}
	defer func() { cancel(); running.Wait() }()
	var who rotation.Consumers = open{}
	if forced {
		config.DeleteAfter = time.Nanosecond // and no application reads its key again in time
	} else {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			oldest := ""
			for i, p := range all {
				if id := p.using.Load(); id == nil {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				} else if i == 0 || *id < oldest {
					oldest = *id
				}
			}
			_ = json.NewEncoder(w).Encode(consumers.Holding{IDs: []string{oldest}, Primary: oldest})
		}))
		t.Cleanup(server.Close)
		asked, err := consumers.New(consumers.Config{Set: set, Ask: []string{server.URL}, Again: time.Millisecond, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		who = soon{asked}
	}
	run(t, s.engine(s.reader, d.keys(config), who, nil))
	for range rotations {
		doc, err := s.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		old, _ := doc.Primary()
		if err := s.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Idle(old.ID)
	}
	cancel()
	running.Wait()
	for _, p := range all {
		signed += p.signed.Load()
	}
	if keys := d.Keys(); len(keys) != 1 {
		t.Errorf("in the end there are %d keys", len(keys))
	}
	return signed, rejected
}

// TestNoSignatureIsRejected while keys are exchanged again and again.
func TestNoSignatureIsRejected(t *testing.T) {
	for name, start := range doubles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rotations := max(rotations()/len(doubles), 1)
			signed, rejected := live(t, start, rotations, false)
			if len(rejected) > 0 || signed < int64(rotations) {
				t.Errorf("of %d signatures %d were rejected: %s", signed, len(rejected), fmt.Sprint(rejected[:min(len(rejected), 3)]))
			}
			t.Logf("%d rotations, %d signatures, %d rejected", rotations, signed, len(rejected))
		})
	}
}

// TestWithTheGateForcedOpenSignaturesAreRejected shows that the test above can fail.
func TestWithTheGateForcedOpenSignaturesAreRejected(t *testing.T) {
	if signed, rejected := live(t, doubles["aws"], 3, true); len(rejected) == 0 {
		t.Errorf("none of %d signatures was rejected", signed)
	}
}
