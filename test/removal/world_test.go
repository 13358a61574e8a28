package removal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
	"github.com/secretsync/syncer/test/proctest"
)

// A mode is the life of a process: it delivers once, with retries, before the application
// starts; or it stays and polls.
type mode string

const (
	oneShot mode = "init, application"
	sidecar mode = "sidecar"
)

// setting are the choices of a row of the table.
type setting struct {
	lost    string // the variable in question
	host    string // the server's name in its address
	timeout time.Duration
	hold    time.Duration // of the brake
}

// world is a server, a destination, and a process between them. The test triggers its polls
// or retries.
type world struct {
	testing.TB
	setting
	mode   mode
	server *server
	dest   destination
	key    string
	values map[string]string // variable → the value it has
	all    []string          // that were ever set

	set    records.Lane
	client *conjur.Client
	known  *variables.Client
	syncer *workers.Syncer
	failed map[targets.Key]error
	looks  atomic.Int64
	events []variables.HoldEvent
	said   strings.Builder // all errors and log lines

	mu   sync.Mutex
	dial func(context.Context) (net.Conn, error) // nil: as it is
}

// base is the shared beginning of all worlds. It is created once, because that takes time.
type base struct {
	data   []byte // of the server
	key    string // of the identity
	values map[string]string
}

func newBase(t testing.TB, lost string) base {
	t.Helper()
	s := &server{t: t, dataKey: make([]byte, 32)}
	s.now.Store(s.open(s.fresh()))
	w := &world{TB: t, setting: setting{lost: lost}, server: s, values: map[string]string{}}
	w.load("- !policy { id: app }\n- !policy { id: other }\n- !policy { id: hosts, body: [ !host web ] }\n")
	w.define(w.ids()...)
	w.renew(w.ids()...)
	data, err := os.ReadFile(s.backup())
	if err != nil {
		t.Fatal(err)
	}
	return base{data: data, key: s.hostKey("hosts/web"), values: w.values}
}

func newWorld(t testing.TB, m mode, dest destination, b base, s setting) *world {
	t.Helper()
	w := &world{
		TB: t, setting: s, mode: m, dest: dest, server: startServer(t, s.host, b.data),
		key: b.key, values: maps.Clone(b.values), all: slices.Collect(maps.Values(b.values)),
	}
	w.server.lost = w.lost
	w.set.Replace(dest.targets(w.lost, kept, others()))
	w.process()
	w.deliver()
	return w
}

// The first target contains the variable in question and another one; the second contains
// the rest. The last variable is never part of a batch.
const kept = "app/user"

func others() []string { return []string{"other/a", "other/b", "other/c", "other/d,e"} }

func (w *world) ids() []string { return append([]string{w.lost, kept}, others()...) }

// split returns the branch of a variable and its name there.
func split(id string) (branch, name string) {
	branch, name, _ = strings.Cut(id, "/")
	return branch, name
}

// define declares variables, in their branches, that the identity may read.
func (w *world) define(ids ...string) {
	w.Helper()
	bodies := map[string]string{}
	for _, id := range ids {
		branch, name := split(id)
		bodies[branch] += fmt.Sprintf("- !variable %q\n", name)
	}
	for branch, body := range bodies {
		w.server.policy(conjurd.Update, branch, body)
	}
	w.load(privilege("!permit", "read, execute", ids...))
}

// privilege is the policy that grants or revokes rights of the identity.
func privilege(tag, privileges string, ids ...string) string {
	var text strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&text, "- %s { role: !host hosts/web, privileges: [%s], resource: !variable %q }\n", tag, privileges, id)
	}
	return text.String()
}

// load loads a policy that adds or revokes.
func (w *world) load(text string) { w.Helper(); w.server.policy(conjurd.Update, "root", text) }

// renew sets variables to values that exist nowhere else.
func (w *world) renew(ids ...string) {
	w.Helper()
	values := map[string]string{}
	for _, id := range ids {
		value := "canary-" + rand.Text()
		w.all = append(w.all, value)
		w.values[id], values[id] = value, value
	}
	w.server.set(values)
}

// next lets a process see a change that it notices only at its start: a process that
// delivers once is replaced by another.
func (w *world) next() {
	w.Helper()
	if w.mode == oneShot {
		w.process()
	}
}

// process creates the parts of a new process.
func (w *world) process() {
	w.Helper()
	client, err := conjur.New(conjur.Config{
		ApplianceURL: "https://" + w.host + ":40403", Account: account, CA: string(w.server.ca.Cert),
		Authenticator: authn.APIKey{Login: "host/hosts/web", Key: secret.New([]byte(w.key))},
		HTTPTimeout:   w.timeout, RateLimit: 1e6, Dial: w.connect, Logger: zap.New(w),
	})
	if err != nil {
		w.Fatal(err)
	}
	w.known, err = variables.New(client, variables.Config{
		SearchRate: 1e6, Rules: variables.Rules{Brake: variables.Brake{Hold: w.hold}}, Listener: w, Logger: zap.New(w),
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(client.Close)
	if w.client != nil {
		w.client.Close()
	}
	w.client = client
	w.syncer = &workers.Syncer{
		Targets: &w.set, Values: w.known, Templates: noTemplates{}, Sink: w.dest.sink(),
		Policy: workers.Policy{RemoveRevoked: true}, Log: zap.New(w),
	}
	w.failed = map[targets.Key]error{}
	for _, key := range w.set.Keys() {
		w.failed[key] = errors.New("not delivered yet")
	}
}

// Held implements variables.Listener.
func (w *world) Held(e variables.HoldEvent) { w.events = append(w.events, e) }

func (w *world) connect(ctx context.Context, network, _ string) (net.Conn, error) {
	w.mu.Lock()
	dial := w.dial
	w.mu.Unlock()
	if dial != nil {
		return dial(ctx)
	}
	return (&net.Dialer{}).DialContext(ctx, network, w.server.addr)
}

// reaches sets the target of new connections, and ends the existing ones.
func (w *world) reaches(dial func(context.Context) (net.Conn, error)) {
	w.mu.Lock()
	w.dial = dial
	w.mu.Unlock()
	w.client.Close()
}

// step runs a poll, or a retry in a one-shot process, and the syncs that follow.
func (w *world) step() {
	w.Helper()
	w.looks.Add(1)
	var keys []targets.Key
	if w.mode == sidecar {
		changed, err := w.known.Changed(w.Context(), w.set.Variables())
		w.say(err)
		keys = w.set.ByVariable(changed...)
	}
	for key, err := range w.failed {
		if !workers.Permanent(err, w.mode == sidecar) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	w.syncer.Sync(w.Context(), w.Context(), slices.Compact(keys), func(r workers.Result) {
		w.say(r.Err)
		delete(w.failed, r.Key)
		if r.Err != nil {
			w.failed[r.Key] = r.Err
		}
	})
}

func (w *world) say(err error) {
	if err != nil {
		fmt.Fprintln(&w.said, err)
	}
}

// deliver runs steps until all targets match Conjur, and a poll has confirmed that.
func (w *world) deliver() {
	w.Helper()
	w.eventually("everything delivered", func() bool {
		w.step()
		all := strings.Join(slices.Collect(maps.Values(contents(w.dest.look()))), "\n")
		missing := func(id string) bool { return !strings.Contains(all, w.values[id]) }
		return len(w.failed) == 0 && !slices.ContainsFunc(w.ids(), missing)
	})
	w.step()
}

// eventually waits until the condition holds.
func (w *world) eventually(what string, condition func() bool) {
	w.Helper()
	met := false
	defer func() {
		if !met {
			w.Logf("%v\n%s", w.failed, w.said.String())
		}
	}()
	proctest.Eventually(w, what, condition)
	met = true
}

// untouched fails the test if anything was written since the observation before.
func (w *world) untouched(before map[string]sight, when string) {
	w.Helper()
	now := w.dest.look()
	if d := differ(contents(now), contents(before)); d != "" {
		w.Errorf("%s: %s", when, d)
	}
	for name, s := range before {
		if now[name].stamp != s.stamp {
			w.Errorf("%s: %s was touched", when, name)
		}
	}
}

// wants fails the test if the content differs from want.
func (w *world) wants(want map[string]string, when string) {
	w.Helper()
	if d := differ(contents(w.dest.look()), want); d != "" {
		w.Errorf("%s: %s", when, d)
	}
}

type noTemplates struct{}

func (noTemplates) Text(context.Context, *targets.Target) (string, error) { return "", nil }
