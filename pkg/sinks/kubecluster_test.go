package sinks

import (
	"sync"
	"testing"

	"github.com/secretsync/syncer/test/kubetest"
)

// controlPlane is started by the first test that needs it, so that those of
// files do without, and stopped by TestMain.
type controlPlane struct {
	once sync.Once
	*kubetest.ControlPlane
	err error
}

var cluster controlPlane

// Cluster returns the control plane of all tests, those outside of the package
// included.
func Cluster(t testing.TB) *kubetest.ControlPlane {
	t.Helper()
	cluster.once.Do(func() { cluster.ControlPlane, cluster.err = kubetest.Start() })
	if cluster.err != nil {
		t.Fatal(cluster.err)
	}
	return cluster.ControlPlane
}

func stopCluster() error {
	if cluster.ControlPlane == nil {
		return nil
	}
	return cluster.Stop()
}
