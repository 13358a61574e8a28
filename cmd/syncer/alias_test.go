package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/test/proctest"
)

// called starts syncer by the name of a link to it.
func called(t *testing.T, name string, args ...string) *proctest.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(link, args...)
	cmd.Env = []string{asCommand + "=1"}
	return proctest.Start(t, cmd, nil)
}

func TestBinaryDoesWhatTheScriptsDoWhoseNamesItHas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	status := notify.OpenStatus(dir)
	waiting := called(t, "conjur-secrets-provided.sh", dir)
	called(t, "conjur-secrets-unchanged.sh", dir).Exit(0)
	if err := status.SetUpdated(); err != nil {
		t.Fatal(err)
	}
	called(t, "conjur-secrets-unchanged.sh", dir).Exit(1)
	called(t, "conjur-secrets-unchanged.sh", dir).Exit(0)
	waiting.MustRun()
	if err := status.SetProvided(); err != nil {
		t.Fatal(err)
	}
	waiting.Exit(0)
}

func TestCommandLine(t *testing.T) {
	for _, test := range [][2][]string{
		{nil, nil},
		{{"/syncer"}, {}},
		{{"/usr/local/bin/secrets-provider", "--config", "c"}, {"--config", "c"}},
		{{"/usr/local/bin/conjur-secrets-provided.sh"}, {"wait"}},
		{{"/usr/local/bin/conjur-secrets-unchanged.sh"}, {"probe", "unchanged"}},
		{{"conjur-secrets-provided.sh", "/status"}, {"wait", "--status-dir", "/status"}},
	} {
		if got := commandLine(test[0]); !slices.Equal(got, test[1]) {
			t.Errorf("%q is %q, want %q", test[0], got, test[1])
		}
	}
}
