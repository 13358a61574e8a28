package proctest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestADeadServerIsNotWaitedFor: nothing is waited for after the program's end, although
// the shell that ends it reads.
func TestADeadServerIsNotWaitedFor(t *testing.T) {
	var d Daemon
	cmd := exec.Command("false")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err := d.Begin(Tie(cmd, "KILL"), func() error { return errors.New("no answer") })
	if err == nil || !strings.Contains(err.Error(), "has ended") || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("error %v", err)
	}
}

// TestAServerEndsByItsSignal: it can end as its kind of server does in a crash.
func TestAServerEndsByItsSignal(t *testing.T) {
	var d Daemon
	var said strings.Builder
	ready := filepath.Join(t.TempDir(), "ready")
	cmd := exec.Command("sh", "-c", `trap 'echo asked; exit' TERM; : > "$0"; while :; do sleep 0.01; done`, ready)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout = &said
	if err := d.Begin(Tie(cmd, "TERM"), func() error { _, err := os.Stat(ready); return err }); err != nil {
		t.Fatal(err)
	}
	d.Crash()
	if said.String() != "asked\n" {
		t.Errorf("the server said %q", said.String())
	}
}
