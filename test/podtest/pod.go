//go:build linux

// Package podtest gives processes the environment of a Pod. Each container has a separate
// mount namespace with a root folder and volumes. With shareProcessNamespace, the containers
// share a process namespace with /pause. The package needs root, and fails without.
package podtest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/test/gobuild"
	"github.com/secretsync/syncer/test/proctest"
)

// patience is how long to wait for what must happen.
const patience = 30 * time.Second

// Pod is a process namespace, which ends with the test.
type Pod struct {
	t     testing.TB
	dir   string
	actor string // the program that plays applications
	pause *exec.Cmd
	ended chan struct{}
}

// Start makes a Pod with nothing but /pause in it.
func Start(t testing.TB) *Pod {
	t.Helper()
	p := &Pod{t: t, dir: t.TempDir(), ended: make(chan struct{})}
	p.actor = filepath.Join(p.dir, "actor")
	if err := gobuild.Build(p.actor, "", "github.com/secretsync/syncer/test/podtest/actor"); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(p.dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	p.pause = exec.Command(os.Args[0], p.actor, root)
	p.pause.Env = []string{role + "=" + rolePause}
	p.pause.Stderr = os.Stderr
	p.pause.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	if err := p.pause.Start(); err != nil {
		t.Fatalf("making a process namespace, which needs root: %v", err)
	}
	go func() {
		defer close(p.ended)
		_ = p.pause.Wait()
	}()
	t.Cleanup(func() {
		_ = p.pause.Process.Kill() // and with it all that is in the namespace
		<-p.ended
	})
	proctest.Eventually(t, "/pause", func() bool { return strings.HasPrefix(p.commandLine(), "/pause") })
	return p
}

func (p *Pod) commandLine() string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pause.Process.Pid))
	return string(line)
}

// Lives reports whether /pause runs.
func (p *Pod) Lives() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Run starts a command as the first process of a container: in the Pod's
// process namespace, in a mount namespace of its own with a /proc that fits,
// and as a user. Who started it must wait for it before the test's clean-up
// comes to the Pod; if nobody has, it is killed then.
func (p *Pod) Run(cmd *exec.Cmd, user int) error {
	asEntrant(cmd, Container{User: user, Group: user}, 0)
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/pid", p.pause.Process.Pid))
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()
	started := make(chan error, 1)
	go func() {
		// The thread's children belong to the namespace, so it is not given
		// back: it ends with this goroutine.
		runtime.LockOSThread()
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWPID); err != nil {
			started <- fmt.Errorf("entering the process namespace: %w", err)
			return
		}
		started <- cmd.Start()
	}()
	err = <-started
	if err == nil {
		p.t.Cleanup(func() {
			if cmd.ProcessState == nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // else /pause cannot end
			}
		})
	}
	return err
}

// App is a process that reports the signals that it receives.
type App struct {
	t     testing.TB
	name  string
	pid   int
	lines chan string
}

// App starts an application that runs the executable name as a user.
func (p *Pod) App(name string, user int) *App {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), name)
	program, err := os.ReadFile(p.actor)
	if err == nil {
		err = os.WriteFile(path, program, 0o755)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	Reachable(p.t, path)
	cmd := exec.Command(path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := p.Run(cmd, user); err != nil {
		p.t.Fatal(err)
	}
	a := &App{t: p.t, name: name, pid: cmd.Process.Pid, lines: make(chan string, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(a.lines)
		for text := bufio.NewScanner(out); text.Scan(); {
			a.lines <- text.Text()
		}
	}()
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
	a.Gets("ready")
	return a
}

// PID is the application's number outside the Pod.
func (a *App) PID() int { return a.pid }

// Gets waits for a signal, such as SIGHUP, which must be the next one.
func (a *App) Gets(signal string) {
	a.t.Helper()
	select {
	case line, ok := <-a.lines:
		if !ok || line != signal {
			a.t.Errorf("%s got %q, want %s", a.name, line, signal)
		}
	case <-time.After(patience):
		a.t.Fatalf("%s has not got %s", a.name, signal)
	}
}

// Got returns the received signals that Gets did not wait for.
func (a *App) Got() (signals []string) {
	for {
		select {
		case line, ok := <-a.lines:
			if !ok {
				return signals
			}
			signals = append(signals, line)
		default:
			return signals
		}
	}
}

// Reachable lets all users reach what is at path.
func Reachable(t testing.TB, path string) {
	for dir := filepath.Dir(path); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// Alone starts a command in a process namespace of its own, as in a Pod that
// does not share one. Who started it must wait for it.
func Alone(cmd *exec.Cmd, user int) error { return Container{User: user, Group: user}.Start(cmd) }
