//go:build linux && long

// Package samples deploys what users of the Secrets Provider have, with the
// image changed and nothing else: the manifests in testdata go through migrate
// to a real API server, and their containers run as real processes in the root
// folder of Syncer's image, with the volumes, the environment and the rights
// that the manifests give them. It needs root.
package samples

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/podtest"
	"github.com/secretsync/syncer/test/proctest"
)

var (
	plane *kubetest.ControlPlane
	built *image
)

func TestMain(m *testing.M) {
	podtest.Main()
	proctest.AtOnce(8)
	goleak.VerifyTestMain(gobuild.Main(kubetest.Main(m, &plane), func(dir string) (err error) {
		built, err = buildImage(dir)
		return err
	}))
}

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	proctest.Eventually(t, what, condition)
}
