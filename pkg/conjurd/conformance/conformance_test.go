package conformance_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/conjurd/conformance"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestServer runs the suite against the server that the environment names, or
// else against conjurd in its strict form.
func TestServer(t *testing.T) {
	target, given, err := conformance.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	if !given {
		s := conjurdtest.Start(t, conjurdtest.Strict())
		target = conformance.Target{URL: s.URL, CA: s.CA, Account: s.Account, Login: "admin", APIKey: s.AdminKey, Ours: true, JWT: true}
	}
	conformance.Run(t, target)
}
