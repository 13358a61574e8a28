// Package cluster tests the whole of Syncer on a real Kubernetes API server,
// with a real Conjur server: processes, as a Deployment, a Job or a sidecar
// would run them, under a service account with exactly the rights they need.
package cluster

import (
	"flag"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

var (
	plane      *kubetest.ControlPlane
	binary     string // syncer, built with the race detector if the tests are
	bareBinary string // the baseline of benchmarks
)

func TestMain(m *testing.M) {
	proctest.AtOnce(8)
	goleak.VerifyTestMain(gobuild.Main(kubetest.Own(m, &plane, usedRights), build))
}

// build builds what is tested, and what is measured as it is shipped.
func build(dir string) error {
	var flags []string
	if gobuild.Race() {
		flags = []string{"-race"}
	}
	if flag.Lookup("test.bench").Value.String() != "" {
		flags = []string{"-trimpath", "-ldflags=-s -w"}
		bareBinary = filepath.Join(dir, "bare")
		if err := gobuild.Build(bareBinary, "", "./bare", flags...); err != nil {
			return err
		}
	}
	binary = filepath.Join(dir, "syncer")
	return gobuild.Build(binary, "", "../../cmd/syncer", flags...)
}

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	proctest.Eventually(t, what, condition)
}
