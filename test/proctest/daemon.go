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
	ended chan struct{} // closed when the server has ended; nil: it was not begun
	group int           // the process group of the server
	hold  io.Closer     // its standard input
	held  []int         // the sockets that hold its addresses
}

// Tie makes a command end by a signal when its standard input ends.
func Tie(cmd *exec.Cmd, signal string) *exec.Cmd {
	const text = `exec 3<&0; "$@" & server=$!; { read -r _ <&3; kill -"$0" $server; } & wait $server; kill -KILL 0`
	cmd.Args = append([]string{"sh", "-c", text, signal, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return cmd
}

// Begin runs a command that ends with its standard input and leads a process group, and
// returns when the server is ready. After an error it does not run. A slow start is not an
// error: on a busy machine, some servers need minutes.
func (d *Daemon) Begin(cmd *exec.Cmd, ready func() error) (err error) {
	if d.hold, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	d.ended, d.group = ended, cmd.Process.Pid
	go func() {
		defer close(ended)
		_ = cmd.Wait() // by a signal, or by an error that its log shows
	}()
	for deadline := time.Now().Add(3 * Patience); ; {
		err := ready()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			d.Crash()
			return fmt.Errorf("the server does not start: %w", err)
		}
		select {
		case <-ended:
			d.Crash()
			return fmt.Errorf("the server has ended during its start: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Crash ends the server at once, if it runs.
func (d *Daemon) Crash() {
	if d.ended == nil {
		return
	}
	_ = d.hold.Close()
	select {
	case <-d.ended:
	case <-time.After(Patience):
		_ = syscall.Kill(-d.group, syscall.SIGKILL)
		<-d.ended
	}
	d.ended = nil
}

// End ends the server at once, if it runs, and frees its addresses.
func (d *Daemon) End() {
	d.Crash()
	for _, fd := range d.held {
		_ = syscall.Close(fd)
	}
	d.held = nil
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
