package cluster

import (
	"os/exec"
	"testing"

	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/proctest"
)

// spawn starts syncer.
func spawn(t testing.TB, env []string, args ...string) *proctest.Process {
	t.Helper()
	if err := gobuild.Inputs(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = env
	return proctest.Start(t, cmd, nil)
}
