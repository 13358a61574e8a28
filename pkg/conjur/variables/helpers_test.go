package variables_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup is how a client is configured, and the one of Conjur below it.
type setup struct {
	conjur.Config
	variables.Rules
	variables.Listener
	Users func() map[string]variables.Use
}

type conjurClient = conjur.Client

// client is what knows the variables, and the one of Conjur below it.
type client struct {
	*variables.Client
	*conjurClient
}

func (c client) Close() { c.conjurClient.Close() }

// Fetch fetches without earlier answers.
func (c client) Fetch(ctx context.Context, ids []string) map[string]variables.Answer {
	return c.Client.Fetch(ctx, ids, nil)
}

// newClient makes a client that ends with the test.
func newClient(t testing.TB, config conjur.Config, adapt func(*setup)) client {
	t.Helper()
	s := setup{Config: config}
	if adapt != nil {
		adapt(&s)
	}
	below, err := conjur.New(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(below.Close)
	above, err := variables.New(below, variables.Config{
		Rules: s.Rules, SearchRate: s.RateLimit / 2, Listener: s.Listener, Users: s.Users, Logger: s.Logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	return client{above, below}
}

// start serves the double over TLS and makes a client of it.
func start(t testing.TB, d *conjurtest.Double, adapt func(*setup)) client {
	t.Helper()
	return newClient(t, d.Start(t), adapt)
}

// serve does so over pipes, for tests whose clock is not the real one.
func serve(t testing.TB, d *conjurtest.Double, adapt func(*setup)) client {
	t.Helper()
	return newClient(t, d.Pipe(t), adapt)
}

// fetch fetches one variable.
func fetch(t *testing.T, c client, id string) variables.Answer {
	t.Helper()
	return c.Fetch(t.Context(), []string{id})[id]
}

func wantFound(t *testing.T, a variables.Answer, value string) {
	t.Helper()
	if a.Verdict != variables.Found || a.Err != nil || string(a.Value.Bytes()) != value {
		t.Errorf("got %v %q (%v), want %q", a.Verdict, a.Value.Bytes(), a.Err, value)
	}
}

func wantUnknown(t *testing.T, a variables.Answer) {
	t.Helper()
	if a.Verdict != variables.Unknown || a.Err == nil || a.Value.Len() != 0 {
		t.Errorf("got %v (%v), want unknown and an error", a.Verdict, a.Err)
	}
}

func wantSuspect(t *testing.T, a variables.Answer) {
	t.Helper()
	wantUnknown(t, a)
	if _, ok := errors.AsType[*variables.SuspectError](a.Err); !ok {
		t.Errorf("got %v, want a suspicion", a.Err)
	}
}

func wantGone(t *testing.T, a variables.Answer, reason variables.Reason) {
	t.Helper()
	gone, ok := errors.AsType[*variables.GoneError](a.Err)
	if a.Verdict != variables.Gone || !ok || gone.Reason != reason {
		t.Errorf("got %v (%v), want gone, %s", a.Verdict, a.Err, reason)
	}
}

// poll checks which variables a poll reports.
func poll(t *testing.T, c client, ids []string, want ...string) {
	t.Helper()
	got, err := c.Changed(t.Context(), ids)
	if err != nil {
		t.Errorf("poll: %v", err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("changed: %q, want %q", got, want)
	}
}
