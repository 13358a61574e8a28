package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	testfaults "github.com/secretsync/syncer/test/faults"
	"github.com/secretsync/syncer/test/length"
	"github.com/secretsync/syncer/test/proctest"
)

var killSeeds = length.Seeds()

// TestRotateRunIsKilled at its requests, before they arrive and before their
// answers do, while a set begins and is rotated once. Those that came after meet
// all kinds of faults, and finish it.
func TestRotateRunIsKilled(t *testing.T) {
	const boundaries = 24 // a rotation without faults has about as many
	turns := make(chan struct{}, 6)
	var all sync.WaitGroup
	for seed := range killSeeds() {
		for at := seed % 3; at < boundaries; at += 3 {
			kind := testfaults.KillBefore + testfaults.Kind((at/3+seed/3)%2)
			k := newKilled(t, &testfaults.Plan{At: at, Kind: kind, Dice: rand.New(rand.NewPCG(uint64(seed), uint64(at)))})
			turns <- struct{}{}
			all.Go(func() {
				defer func() { <-turns }()
				if err := k.survives(); err != nil {
					t.Errorf("seed %d, %v request %d: %v", seed, kind, at, err)
				}
			})
		}
	}
	all.Wait()
}

// killed is a set, and the processes that rotate it, each until it is killed.
type killed struct {
	*conjurdtest.Server
	t      *testing.T
	plan   *testfaults.Plan
	reader *conjur.Client // which no fault concerns
	config string
}

func newKilled(t *testing.T, plan *testfaults.Plan) *killed {
	t.Helper()
	k := &killed{Server: conjurdtest.Start(t), t: t, plan: plan, config: filepath.Join(t.TempDir(), "syncer.yaml")}
	k.Policy(`
- !variable jwt
- !variable jwt/control
- !variable plain
- !host rotates
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable jwt, !variable jwt/control, !variable plain] }
`)
	if err := os.WriteFile(k.config, []byte(`
conjur: {httpTimeoutSeconds: 5}
rotation:
  interval: 1s
  sets: [{set: jwt, generate: {random: 32}, keep: 0s, confirm: {wait: 1s}, publish: {plain: key}}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	k.reader = judge(t, k.Server)
	k.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.UserAgent(), "judge") {
				next.ServeHTTP(w, r)
				return
			}
			plan.Serve(next, w, r)
		})
	})
	return k
}

// judge is a client of the host that rotates, which the server tells from the
// process under test by its version.
func judge(t testing.TB, server *conjurdtest.Server) *conjur.Client {
	t.Helper()
	client, err := conjur.New(conjur.Config{
		ApplianceURL: server.URL, Account: server.Account, CA: string(server.CA), RateLimit: 1e6, Version: "judge",
		Authenticator: authn.APIKey{Login: "host/rotates", Key: secret.New([]byte(server.HostKey("rotates")))},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// survives returns what went wrong until the set was rotated.
func (k *killed) survives() error {
	deadline, cancel := context.WithTimeout(context.Background(), proctest.Patience)
	defer cancel()
	first := ""
	for {
		dead, die := context.WithCancel(deadline)
		born := make(chan int, 1)
		kill := sync.OnceFunc(func() {
			_ = syscall.Kill(<-born, syscall.SIGKILL)
			die()
		})
		k.plan.KillBy(kill)
		p := spawn(k.t, proctest.Environ(k.Env("rotates")), "rotate", "run", "--config", k.config)
		born <- p.PID()
		finished := false
		for dead.Err() == nil && !finished {
			var err error
			if finished, err = k.look(deadline, &first); err != nil {
				kill()
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
		kill()
		p.ExitCode()
		switch {
		case finished:
			return k.judge(deadline)
		case deadline.Err() != nil:
			return fmt.Errorf("it is stuck:\n%s", p.Log())
		}
	}
}

// look has the set rotated once it has begun, and reports whether it was.
func (k *killed) look(ctx context.Context, first *string) (finished bool, err error) {
	set := rotation.Set{Conjur: k.reader, ID: "jwt"}
	held, err := set.Read(ctx)
	if err != nil || held.Document == nil {
		return false, err
	}
	primary, ok := held.Primary()
	switch {
	case !ok || held.Stage() != "idle":
		return false, nil
	case *first == "":
		*first = primary.ID
		return false, set.Steer(ctx, versions.Command{Verb: "now", At: time.Now()})
	}
	plain := k.reader.Variable(ctx, "plain", "").Found["plain"]
	return primary.ID != *first && plain.Equal(primary.Parts["key"]), nil
}

// judge looks at all values that the set had.
func (k *killed) judge(ctx context.Context) error {
	numbers, reading := k.reader.Versions(ctx, "jwt")
	var values [][]byte
	for _, n := range numbers {
		var value secret.Value
		if value, reading = k.reader.VariableAt(ctx, "jwt", n); reading.Err != nil {
			break
		}
		values = append(values, value.Bytes())
	}
	if reading.Err != nil {
		return reading.Err
	}
	return testfaults.Judge(values)
}
