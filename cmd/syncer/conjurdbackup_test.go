package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestBackupOfARunningServerCanBeServed takes a copy while the server serves,
// and serves the copy with the same data key.
func TestBackupOfARunningServerCanBeServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yml")
	if err := os.WriteFile(policy, []byte("- !variable a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	home, copied := filepath.Join(dir, "home"), filepath.Join(dir, "copy.db")
	init := spawn(t, nil, "conjurd", "init", "--dir", home, "--policy", policy)
	init.Exit(0)
	serve := spawn(t, nil, "conjurd", "--dir", home, "--addr", "127.0.0.1:0", "--backup", copied)
	eventually(t, "the server's address", func() bool { return len(serve.Lines("CONJUR_APPLIANCE_URL=")) == 1 })
	serve.Signal(syscall.SIGUSR1)
	eventually(t, "the backup", func() bool { return len(serve.Lines("backup written")) == 1 })
	serve.Stop()

	if err := os.Rename(copied, filepath.Join(home, "data.db")); err != nil {
		t.Fatal(err)
	}
	again := spawn(t, nil, "conjurd", "--dir", home, "--addr", "127.0.0.1:0")
	eventually(t, "the copy's server", func() bool { return len(again.Lines("CONJUR_APPLIANCE_URL=")) == 1 })
	again.Stop()
}
