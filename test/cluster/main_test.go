// Package cluster tests the whole of Syncer on a real Kubernetes API server,
// with a real Conjur server: processes, as a Deployment, a Job or a sidecar
// would run them, under a service account with exactly the rights they need.
package cluster

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

var (
	plane  *kubetest.ControlPlane
	binary string // syncer, built with the race detector
)

func TestMain(m *testing.M) {
	proctest.AtOnce(8)
	dir, err := os.MkdirTemp("", "cluster")
	if err == nil {
		binary = filepath.Join(dir, "syncer")
		err = build(binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(kubetest.Own(m, &plane, usedRights), goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// build builds what is tested with the race detector, and what is measured as
// it is shipped.
func build(binary string) error {
	flags := []string{"-race"}
	if flag.Lookup("test.bench").Value.String() != "" {
		flags = []string{"-trimpath", "-ldflags=-s -w"}
	}
	return gobuild.Build(binary, "", "../../cmd/syncer", flags...)
}

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	proctest.Eventually(t, what, condition)
}
