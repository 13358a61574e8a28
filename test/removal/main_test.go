// Package removal tests the promise that a doubt removes nothing, and that no revoked value
// stays. A table lists the possible answers of a server or of a gateway, and random
// histories are compared with a model.
package removal

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/test/kubetest"
)

// cluster is the control plane of the tests with Secrets, started by the first
// one that needs it.
var cluster struct {
	once  sync.Once
	plane *kubetest.ControlPlane
	err   error
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(runner{m}) }

// runner stops the control plane when the tests are done.
type runner struct{ m *testing.M }

// Run implements goleak.TestingM.
func (r runner) Run() int {
	code := r.m.Run()
	if cluster.plane != nil {
		if err := cluster.plane.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

func controlPlane(t testing.TB) *kubetest.ControlPlane {
	t.Helper()
	cluster.once.Do(func() { cluster.plane, cluster.err = kubetest.Shared() })
	if cluster.err != nil {
		t.Fatal(cluster.err)
	}
	return cluster.plane
}
