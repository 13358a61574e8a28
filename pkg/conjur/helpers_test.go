package conjur_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client makes a client that ends with the test.
func client(t *testing.T, config conjur.Config, adapt func(*conjur.Config)) *conjur.Client {
	t.Helper()
	if adapt != nil {
		adapt(&config)
	}
	c, err := conjur.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// start serves the double over TLS and makes a client of it.
func start(t *testing.T, d *conjurtest.Double, adapt func(*conjur.Config)) *conjur.Client {
	t.Helper()
	return client(t, d.Start(t), adapt)
}

// serve does so over pipes, for tests whose clock is not the real one.
func serve(t *testing.T, d *conjurtest.Double, adapt func(*conjur.Config)) *conjur.Client {
	t.Helper()
	return client(t, d.Pipe(t), adapt)
}

// fetch asks for one variable, in a batch if that can ask for it.
func fetch(t *testing.T, c *conjur.Client, id string) conjur.Values {
	t.Helper()
	if conjur.Batchable(id) {
		return c.Batch(t.Context(), &conjur.Batch{IDs: []string{id}}, "")
	}
	return c.Variable(t.Context(), id, "")
}

func wantFound(t *testing.T, v conjur.Values, value string) {
	t.Helper()
	if v.Form != conjur.Given || v.Err != nil || len(v.Found) != 1 || len(v.Bad) != 0 {
		t.Errorf("form %v (%v), %d values, bad %v; want %q", v.Form, v.Err, len(v.Found), v.Bad, value)
	}
	for _, got := range v.Found {
		if string(got.Bytes()) != value {
			t.Errorf("got %q, want %q", got.Bytes(), value)
		}
	}
}

// wantUnknown wants nothing to follow from the answer.
func wantUnknown(t *testing.T, v conjur.Values) {
	t.Helper()
	switch v.Form {
	case conjur.Given, conjur.Unchanged, conjur.Missing, conjur.Forbidden:
		t.Errorf("form %v, from which something follows", v.Form)
	}
	if v.Err == nil || len(v.Found) != 0 {
		t.Errorf("%d values, error %v", len(v.Found), v.Err)
	}
}
