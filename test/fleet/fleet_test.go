//go:build !race

// Package fleet simulates what thousands of Syncer processes cost one Conjur server. The
// polls, tokens, retries, queues and workers are the real ones, in virtual time. The
// server is a double in memory without TLS, because ten thousand real connections have no
// virtual time. It counts requests, and takes the time that a genuine server took.
//
// The race detector is off: that of Go 1.26 can fail by itself when many timers run in
// virtual time (golang/go#78156). Other packages test the same code with it.
package fleet

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/internal/retry"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

var (
	sidecars = flag.Int("sidecars", 400, "number of sidecars; one Deployment is added for each hundred")
	plot     = flag.String("plot", "", "a `file` to which the test writes a plot of all requests, as SVG")
)

// The fleet: 100 applications, each with a host in Conjur and 5 variables. Their sidecars
// have the default settings. Each Deployment serves 200 Secrets with one variable each.
const (
	applications    = 100
	perApplication  = 5
	perDeployment   = 200
	refreshInterval = 5 * time.Minute
	httpTimeout     = time.Minute
	outage          = 10 * time.Minute
	fullSize        = 10_000
)

// TestFleet leads a fleet through a day that goes wrong. In each window the full fleet
// would send as many requests as in one second, so that a small fleet is no less even.
func TestFleet(t *testing.T) {
	t.Parallel()
	percent := debug.SetGCPercent(400) // there is much garbage
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a.b.c"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		f := &fleet{server: newServer(), token: token, ctx: ctx, stops: make([]func(), *sidecars)}
		defer f.server.close()
		defer f.running.Wait()
		defer stop()
		t.Logf("%d sidecars, %d Deployments; the most of a window of %v, per second", *sidecars, max(*sidecars/100, 1), time.Duration(window())*time.Second)

		f.begin()
		time.Sleep(15 * time.Minute)
		idle := f.watch(t, "idle", 10*time.Minute)
		for _, trouble := range []trouble{stalled, unreachable} {
			f.server.set(trouble)
			f.watch(t, string(trouble), outage)
			f.server.set("")
			after := f.watch(t, "the 10 min after it", 10*time.Minute)
			if after.most > 3*idle.most {
				t.Errorf("after an outage (%s), up to %.1f requests/s, but up to %.1f/s when idle; want at most 3 times as many", trouble, after.most, idle.most)
			}
			if limit := cores / logInCost.Seconds() * float64(*sidecars) / fullSize; after.mostLogins > limit/2 {
				t.Errorf("after an outage (%s), up to %.1f log-ins/s, but the server can serve %.1f/s; want at most half", trouble, after.mostLogins, limit)
			}
			time.Sleep(5 * time.Minute)
		}

		if *sidecars < fullSize/5 {
			return // the other figures have no target
		}
		f.rollout(10 * time.Minute)
		f.watch(t, "all Pods are replaced in 10 min", 10*time.Minute)
		time.Sleep(5 * time.Minute)
		f.server.set(unavailable)
		f.rollout(5 * time.Minute)
		f.watch(t, "all Pods start while it answers 503", outage)
		f.server.set("")
		f.watch(t, "the 10 min after it", 10*time.Minute)
		time.Sleep(5 * time.Minute)
		f.server.revoke(1)
		f.watch(t, "one host of 100 is deleted", 10*time.Minute)
		f.server.revoke(applications)
		f.watch(t, "all hosts are deleted", 10*time.Minute)
		f.server.revoke(0)
		time.Sleep(10 * time.Minute)
		f.server.hide(1)
		f.watch(t, "one host of 100 loses its rights", 10*time.Minute)
		f.server.hide(applications)
		f.watch(t, "all hosts lose their rights", 10*time.Minute)
		f.server.hide(0)
		f.watch(t, "all hosts have their rights again", 10*time.Minute)
		if *plot != "" {
			f.server.plot(t, *plot)
		}
	})
}

// fleet is all processes.
type fleet struct {
	server  *server
	token   string // path of the JWT
	ctx     context.Context
	running sync.WaitGroup
	stops   []func() // by sidecar
}

// begin starts all processes at random moments of one interval.
func (f *fleet) begin() {
	for range max(*sidecars/100, 1) {
		f.running.Go(func() {
			time.Sleep(rand.N(refreshInterval))
			f.start("deployment", each("deployment", perDeployment))
		})
	}
	f.rollout(refreshInterval)
}

// rollout replaces all sidecars, at random moments of the duration. It does not wait.
func (f *fleet) rollout(within time.Duration) {
	for n := range *sidecars {
		f.running.Go(func() {
			time.Sleep(rand.N(within))
			if f.stops[n] != nil {
				f.stops[n]()
			}
			app := fmt.Sprintf("app%02d", n%applications)
			f.stops[n] = f.start(app, []*targets.Target{file(app, ids(app, perApplication)...)})
		})
	}
}

// watch lets time pass, and logs and returns what the fleet did.
func (f *fleet) watch(t *testing.T, phase string, length time.Duration) load {
	from := time.Now()
	time.Sleep(length)
	l := f.server.load(from, time.Now())
	f.server.phases = append(f.server.phases, mark{phase, from})
	t.Logf("%-36s requests/s %6.1f most %6.1f | log-ins/s %5.1f most %5.1f | connections/s %5.1f | busy cores %4.2f",
		phase, l.mean, l.most, l.logins, l.mostLogins, l.connections, l.busy)
	return l
}

func ids(app string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s/v%03d", app, i))
	}
	return all
}

// each returns a target for each of n variables.
func each(app string, n int) (all []*targets.Target) {
	for _, id := range ids(app, n) {
		all = append(all, file(id, id))
	}
	return all
}

func file(name string, ids ...string) *targets.Target {
	t := &targets.Target{Key: targets.FileKey(name), Group: name, Format: targets.FormatJSON, File: targets.File{Path: name}}
	for _, id := range ids {
		t.Entries = append(t.Entries, targets.Entry{Alias: id, Variable: id})
	}
	return t
}

// start starts a process, wired and set as the binary is by default, until stop is called
// or the test ends.
func (f *fleet) start(app string, all []*targets.Target) (stop func()) {
	ctx, stop := context.WithCancel(f.ctx)
	set, content := &records.Lane{}, &memory{}
	set.Replace(all)
	client, err := conjur.New(conjur.Config{
		ApplianceURL: "http://conjur.test", Account: "dev", Dial: f.server.dial, HTTPTimeout: httpTimeout, Version: app,
		Authenticator: authn.JWT{URL: "http://conjur.test/authn-jwt/k8s", TokenPath: f.token},
	})
	if err != nil {
		panic(err)
	}
	values, err := variables.New(client, variables.Config{Rules: variables.Rules{
		ConfirmAfter: refreshInterval / 2, Grace: 10 * time.Second, Steady: 3 * refreshInterval,
		Brake: variables.Brake{Share: 0.5, Hold: 10 * time.Minute},
	}})
	if err != nil {
		panic(err)
	}
	q := queue.New(queue.Config{
		Backoff: retry.Backoff{First: time.Second, Max: time.Minute}, Limit: -1,
		Permanent: func(err error) bool { return workers.Permanent(err, true) },
	})
	pool := workers.NewPool(workers.PoolConfig{
		Work: q, Workers: 4, Timeout: 3 * httpTimeout,
		Syncer: &workers.Syncer{
			Targets: set, Values: values, Templates: content, Sink: content, Policy: workers.Policy{RemoveRevoked: true}, Log: zap.NewNop(),
		},
	})
	poll := &sources.Poll{
		Interval: refreshInterval, Deadline: 2 * httpTimeout, Users: set, Values: values, Queue: enqueuer{q}, Reporter: quiet{}, Heart: quiet{},
	}
	f.running.Go(func() {
		defer client.Close()
		var parts sync.WaitGroup
		parts.Go(func() { pool.Run(ctx) })
		q.Add(queue.Hint{Trigger: "start", Wakes: true}, set.Keys()...)
		poll.Run(ctx)
		parts.Wait()
	})
	return stop
}

type enqueuer struct{ *queue.Queue }

func (q enqueuer) Enqueue(h queue.Hint, keys ...targets.Key) { q.Add(h, keys...) }

// quiet is a Reporter and a Heart.
type quiet struct{}

func (quiet) Report(string, error) {}
func (quiet) Beat() (bool, error)  { return false, nil }
func (quiet) Stuck() bool          { return false }

// memory is a sink without a disk, and has no templates.
type memory struct{ content sync.Map } // targets.Key → map[string]string

func (m *memory) Text(context.Context, *targets.Target) (string, error) { return "", nil }

func (m *memory) Read(_ context.Context, r records.Record) (state sinks.State, err error) {
	content, _ := m.content.LoadOrStore(r.Spec.Key, map[string]string{})
	for name, value := range content.(map[string]string) {
		if state.Parts == nil {
			state.Parts = map[string]secret.Value{}
		}
		state.Parts[name] = secret.New([]byte(value))
	}
	return state, nil
}

func (m *memory) Apply(_ context.Context, r records.Record, c sinks.Changes) (records.Sight, error) {
	if !c.Empty() {
		content := map[string]string{}
		for name, value := range c.Parts {
			content[name] = string(value.Bytes())
		}
		m.content.Store(r.Spec.Key, content)
	}
	return records.Sight{}, nil
}
