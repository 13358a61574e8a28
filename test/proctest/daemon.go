package proctest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"time"
)

// Daemon is a server that tests use. It ends when this process ends, because it reads a
// pipe of it. The zero Daemon does not run.
type Daemon struct {
	cmd  *exec.Cmd
	hold io.Closer // its standard input
}

// Tie makes a command end by a signal when its standard input ends.
func Tie(cmd *exec.Cmd, signal string) *exec.Cmd {
	cmd.Args = append([]string{"sh", "-c", `"$@" & read -r _; kill -` + signal + ` $!; wait $!`, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return cmd
}

// Begin runs a command that ends with its standard input, and returns when the server is
// ready. After an error it does not run.
func (d *Daemon) Begin(cmd *exec.Cmd, ready func() error) (err error) {
	if d.hold, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	d.cmd = cmd
	for deadline := time.Now().Add(Patience); ; time.Sleep(20 * time.Millisecond) {
		err := ready()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			d.Crash()
			return fmt.Errorf("the server does not start: %w", err)
		}
	}
}

// Crash ends the server at once, if it runs.
func (d *Daemon) Crash() {
	if d.cmd == nil {
		return
	}
	_ = d.hold.Close()
	insist := time.AfterFunc(Patience, func() { _ = syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL) })
	defer insist.Stop()
	_ = d.cmd.Wait() // by a signal
	d.cmd = nil
}

// Nobody returns the user for a server that refuses to run as root, and gives it paths.
// It is nil if root does not run the tests.
func Nobody(paths ...string) (as *syscall.Credential, err error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.Atoi(nobody.Uid)
	gid, err2 := strconv.Atoi(nobody.Gid)
	err = errors.Join(err1, err2)
	for _, path := range paths {
		err = errors.Join(err, os.Chown(path, uid, gid))
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}
