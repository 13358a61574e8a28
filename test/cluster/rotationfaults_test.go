package cluster

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/faults"
	"github.com/secretsync/syncer/test/length"
	"github.com/secretsync/syncer/test/proctest"
)

var crashSeeds = length.Seeds()

// TestALeaderMeetsFaults at a request to Conjur or to the API server, and some
// more after it, while a set begins and is rotated once: it is killed, cut off or
// left without an answer. Another process takes the Lease of one that was killed.
func TestALeaderMeetsFaults(t *testing.T) {
	t.Parallel()
	calm := faults.None()
	t.Run("none", func(t *testing.T) { newFaulty(t, calm).survives() })
	for seed := range crashSeeds() {
		dice := rand.New(rand.NewPCG(uint64(seed), 13))
		for kind := range faults.Kinds {
			plan := &faults.Plan{At: dice.IntN(calm.Requests()), Kind: kind, Dice: rand.New(rand.NewPCG(uint64(seed), dice.Uint64()))}
			t.Run(fmt.Sprintf("seed %d, %v request %d", seed, kind, plan.At), func(t *testing.T) {
				t.Parallel()
				newFaulty(t, plan).survives()
			})
		}
	}
}

// faulty is a cluster with a Secret that shows a set, and the processes that
// deliver and rotate it, each until it is killed.
type faulty struct {
	*world
	plan   *faults.Plan
	reader *conjur.Client // which no fault concerns
}

func newFaulty(t *testing.T, plan *faults.Plan) *faulty {
	w := newWorld(t)
	w.Server.Policy(`
- !variable jwt
- !variable jwt/control
- !permit { role: !host app, privileges: [read, execute, update], resources: [!variable jwt, !variable jwt/control] }
`)
	w.secret("keys", nil, func(s *corev1.Secret) { s.Data["conjur-map"] = []byte(`"*": {keys: jwt}`) })
	w.settings = append(w.settings, "leaderElection: {leaseDuration: 3s}", "removeDeletedSecrets: false", `
rotation:
  interval: 1s
  sets: [{set: jwt, generate: {random: 32}, keep: 0s, confirm: {wait: 1s}}]`)
	reader, err := conjur.New(conjur.Config{
		ApplianceURL: w.Server.URL, Account: w.Server.Account, CA: string(w.Server.CA), RateLimit: 1e6, Version: "judge",
		Authenticator: authn.APIKey{Login: "host/app", Key: secret.New([]byte(w.Server.HostKey("app")))},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	meets := func(next http.Handler, spared func(*http.Request) bool) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if spared(r) {
				next.ServeHTTP(rw, r)
				return
			}
			plan.Serve(next, rw, r)
		})
	}
	w.Server.Intercept(func(next http.Handler) http.Handler {
		return meets(next, func(r *http.Request) bool { return strings.Contains(r.UserAgent(), "judge") })
	})
	t.Cleanup(w.through(func(proxy *httputil.ReverseProxy) http.Handler {
		return meets(proxy, func(r *http.Request) bool { return r.URL.Query().Has("watch") })
	}))
	return &faulty{w, plan, reader}
}

// survives has processes rotate the set, and judges what it had.
func (f *faulty) survives() {
	f.Helper()
	var alive *proctest.Process
	var dead chan struct{}
	first := ""
	eventually(f, "a set that was rotated, and is delivered", func() bool {
		if alive == nil {
			alive, dead = f.live()
		}
		select {
		case <-dead:
			alive.ExitCode()
			alive = nil
			return false
		default:
		}
		held, err := rotation.Set{Conjur: f.reader, ID: "jwt"}.Read(f.Context())
		if err != nil || held.Document == nil || held.Stage() != "idle" {
			return false
		}
		primary, ok := held.Primary()
		if ok && first == "" {
			first = primary.ID
			err = rotation.Set{Conjur: f.reader, ID: "jwt"}.SendCommand(f.Context(), versions.Command{Verb: "now", At: time.Now()})
		}
		shown := f.shown("keys")
		return err == nil && ok && primary.ID != first && shown.Primary == primary.ID && len(shown.IDs) == 1
	})
	numbers, reading := f.reader.Versions(f.Context(), "jwt")
	var values [][]byte
	for _, n := range numbers {
		var value secret.Value
		if value, reading = f.reader.VariableAt(f.Context(), "jwt", n); reading.Err != nil {
			break
		}
		values = append(values, value.Bytes())
	}
	if reading.Err != nil {
		f.Fatal(reading.Err)
	}
	if err := faults.Judge(values); err != nil {
		f.Error(err)
	}
}

// live starts a process, and closes dead when the plan kills it.
func (f *faulty) live() (p *proctest.Process, dead chan struct{}) {
	f.Helper()
	dead = make(chan struct{})
	born := make(chan int, 1)
	f.plan.KillBy(sync.OnceFunc(func() {
		_ = syscall.Kill(<-born, syscall.SIGKILL)
		close(dead)
	}))
	f.moveAddress()
	p = f.start()
	born <- p.PID()
	return p, dead
}
