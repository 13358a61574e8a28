package clouds

import (
	"context"
	"errors"
	"flag"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/test/length"
	"github.com/secretsync/syncer/test/proctest"
	"github.com/secretsync/syncer/test/settest"
)

const set = "cloud/keys"

var (
	seeds     = length.Seeds()
	rotations = length.Flag("rotations", 200, 6, "how many rotations the clients live through, all together")
	every     = length.Flag("every", 15, 47, "of how many requests and faults one is tried; odd, so that each fault is") // there are four
)

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// site is a set in Conjur and what rotates it.
type site struct {
	*conjurdtest.Server
	settest.Operator
	t      *testing.T
	reader *conjur.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Server: conjurdtest.Start(t), t: t}
	s.Policy(`
- !policy { id: cloud, body: [ !variable keys, !variable keys/control, !variable admin, !variable old-id, !variable old-secret ] }
- !host rotates
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable cloud/keys, !variable cloud/keys/control] }
- !permit { role: !host rotates, privileges: [read, execute], resources: [!variable cloud/admin, !variable cloud/old-id, !variable cloud/old-secret] }
`)
	s.reader = s.client("reader")
	s.Operator = settest.Operator{T: t, Steered: rotation.Set{Conjur: s.reader, ID: set}}
	t.Cleanup(s.reader.Close)
	return s
}

// client returns a client that the server knows by version.
func (s *site) client(version string) *conjur.Client {
	s.t.Helper()
	client, err := conjur.New(conjur.Config{
		ApplianceURL: s.URL, Account: s.Account, CA: string(s.CA), RateLimit: 1e6, HTTPTimeout: 10 * time.Second, Version: version,
		Authenticator: authn.APIKey{Login: "host/rotates", Key: secret.New([]byte(s.HostKey("rotates")))},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// current reads the set as an actuator does.
func current(client *conjur.Client) func(context.Context) (*versions.Document, error) {
	return func(ctx context.Context) (*versions.Document, error) {
		held, err := rotation.Set{Conjur: client, ID: set}.Read(ctx)
		if err == nil && held.Document == nil {
			err = errors.New("the set has not begun")
		}
		return held.Document, err
	}
}

// heard are the Events and the log of an engine.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) Rotated(e rotation.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, e.Reason+" "+e.Message)
}

func (h *heard) Failed(string, string) {}

// Write takes a line of the log.
func (h *heard) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, string(line))
	return len(line), nil
}

// log returns the log of an engine, with all its levels.
func (h *heard) log() *zap.Logger {
	if h == nil {
		return zap.NewNop()
	}
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewDevelopmentEncoderConfig()), zapcore.AddSync(h), zap.DebugLevel))
}

func (h *heard) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, "\n")
}

// engine rotates the set without any wait but for its consumers.
func (s *site) engine(client *conjur.Client, keys actuators.Actuator, consumers rotation.Consumers, h *heard, adjust ...func(*rotation.Plan)) *rotation.Rotator {
	s.t.Helper()
	values, err := variables.New(client, variables.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	rotated := rotation.Plan{ID: set, Actuator: keys, Outside: "the cloud", Consumers: consumers, Policy: versions.Policy{GiveUp: time.Hour}}
	for _, adjust := range adjust {
		adjust(&rotated)
	}
	var listener rotation.Listener
	if h != nil {
		listener = h
	}
	return rotation.New(rotation.Config{
		Conjur: client, Changes: values, Owner: "us", Interval: 20 * time.Millisecond, Timeout: 30 * time.Second,
		Retry: 10 * time.Millisecond, Watch: time.Nanosecond, Log: h.log(), Sets: []rotation.Plan{rotated}, Listener: listener,
	})
}

// run runs an engine until the test, or stop, ends it.
func run(t *testing.T, r *rotation.Rotator) (stop func()) { return proctest.Running(t, r.Run) }
