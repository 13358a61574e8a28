package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/internal/retry"
)

// Exit statuses, as in shells.
const (
	statusNotFound  = 127
	statusNotRun    = 126
	statusPerSignal = 128 // plus the signal's number
)

// Forwarded lists the signals that a Runner forwards to its command.
func Forwarded() []os.Signal {
	return []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGALRM, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT, unix.SIGWINCH}
}

// Reaction is a Runner's action on its command after secrets have changed. The zero
// Reaction does nothing.
type Reaction struct {
	Restart bool
	Signal  syscall.Signal // 0: none
}

// ParseReaction parses "restart", "none" or "signal:" followed by a name.
func ParseReaction(text string) (Reaction, error) {
	switch name, isSignal := strings.CutPrefix(text, "signal:"); {
	case text == "restart":
		return Reaction{Restart: true}, nil
	case text == "none":
		return Reaction{}, nil
	case isSignal:
		number, err := parseSignal(name)
		return Reaction{Signal: number}, err
	}
	return Reaction{}, fmt.Errorf("%q is not a reaction; use restart, signal:SIGHUP (or another signal) or none", text)
}

// Runner runs a command like an init process. It forwards signals and waits for every
// child of this process, including inherited children. Nothing else in the process may
// start children or wait for them. Use NewRunner to create a Runner.
type Runner struct {
	RunnerConfig
	notified chan struct{}

	// Only Run uses the following fields.
	pid      int                         // of the running command
	apart    bool                        // it has a separate process group
	stopping bool                        // it must end, to be started again
	leaving  bool                        // it must end for good
	kill     time.Time                   // when to kill it; zero: never
	environ  []string                    // its environment
	retry    time.Time                   // when to try the restart again that could not be made; zero: never
	delays   *backoff.ExponentialBackOff // of that restart
}

// RunnerConfig configures a Runner. All fields are required.
type RunnerConfig struct {
	// Args is the command, which is looked up in PATH, and its arguments.
	Args []string
	// Environ returns the environment at each start.
	Environ func() []string
	// Signals delivers the signals to forward; see Forwarded.
	Signals <-chan os.Signal
	// OnChange is the action of Notify.
	OnChange Reaction
	// StopTimeout is how long the command may take to end after SIGTERM.
	StopTimeout time.Duration
	Log         *zap.Logger
}

// NewRunner returns a Runner that has not started its command.
func NewRunner(c RunnerConfig) *Runner {
	return &Runner{RunnerConfig: c, notified: make(chan struct{}, 1), delays: retry.Backoff{First: time.Second}.Start()}
}

// Notify lets the running command react to a change soon: several changes may cause only
// one restart. A command that starts later needs no reaction.
func (r *Runner) Notify(context.Context) error {
	select {
	case r.notified <- struct{}{}:
	default:
	}
	return nil
}

// Run runs the command until it ends, or stops it when ctx ends. It does not stop the command
// for a restart while the kernel would refuse to start the command again. It returns the exit
// status, which is 128 plus the number for a command that a signal ended. The error says
// why the command could not be started.
func (r *Runner) Run(ctx context.Context) (status int, err error) {
	_, _ = os.FindProcess(os.Getpid()) // the first call makes a child, as a test of the kernel
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	defer signal.Stop(children)
	if status, err := r.start(); err != nil {
		return status, err
	}
	ended := ctx.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case s := <-r.Signals:
			r.forward(s.(syscall.Signal))
		case <-r.notified:
			r.react()
		case <-ended:
			ended, r.leaving = nil, true
			r.stop()
		case now := <-timer.C:
			if !r.kill.IsZero() && !now.Before(r.kill) {
				r.Log.Warn("The command has not ended in time; killing it", zap.Duration("timeout", r.StopTimeout))
				r.send(unix.SIGKILL)
				r.kill = time.Time{}
			}
			if !r.retry.IsZero() && !now.Before(r.retry) {
				r.react()
			}
		case <-children:
			switch status, dead := r.reap(); {
			case dead && !(r.stopping && !r.leaving):
				return status, nil
			case dead:
				r.Log.Info("Starting the command again", zap.Int("status", status))
				if status, err := r.startAgain(); err != nil {
					return status, err
				}
			}
		}
		switch {
		case r.kill.IsZero() && r.retry.IsZero():
		case r.kill.IsZero() || !r.retry.IsZero() && r.retry.Before(r.kill):
			timer.Reset(time.Until(r.retry))
		default:
			timer.Reset(time.Until(r.kill))
		}
	}
}

// start starts the command and resets the record of changes.
func (r *Runner) start() (status int, err error) {
	select {
	case <-r.notified: // the new command already knows this change
	default:
	}
	return r.startWith(r.Environ())
}

// startAgain starts the command after a restart has stopped it. If that fails although the
// kernel has agreed before, the command gets its former environment.
func (r *Runner) startAgain() (status int, err error) {
	if _, err = r.start(); err == nil {
		return 0, nil
	}
	r.postpone(explainSize(err, r.Environ()))
	return r.startWith(r.environ)
}

func (r *Runner) startWith(environ []string) (status int, err error) {
	path, err := exec.LookPath(r.Args[0])
	if err != nil {
		return statusOf(err), err
	}
	r.apart = !inForeground()
	p, err := os.StartProcess(path, r.Args, &os.ProcAttr{
		Env:   environ,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: r.apart},
	})
	if err != nil {
		return statusOf(err), err
	}
	r.pid, r.stopping, r.kill, r.environ = p.Pid, false, time.Time{}, environ
	return 0, p.Release() // reap waits for it
}

// canStart reports why the kernel would refuse to start the command with an environment. It
// starts the command as a traced process. Such a process stops before its first
// instruction, and canStart kills it there. If the kernel permits no tracing, canStart finds
// no reason.
func (r *Runner) canStart(environ []string) error {
	path, err := exec.LookPath(r.Args[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the thread that starts the process traces it
	defer runtime.UnlockOSThread()
	p, err := os.StartProcess(path, r.Args, &os.ProcAttr{Env: environ, Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true}})
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS):
		return nil
	case err != nil:
		return explainSize(err, environ)
	}
	defer func() { _ = p.Release() }()
	for {
		_ = unix.Kill(p.Pid, unix.SIGKILL)
		var status unix.WaitStatus
		_, err := unix.Wait4(p.Pid, &status, 0, nil)
		if err == nil && (status.Exited() || status.Signaled()) || err != nil && !errors.Is(err, unix.EINTR) {
			return nil
		}
	}
}

// explainSize adds the longest variable to the error of a command whose environment is too
// large. Linux limits each variable to 32 pages, usually 128 KiB, and all of them together
// to a quarter of the limit of the stack.
func explainSize(err error, environ []string) error {
	if !errors.Is(err, unix.E2BIG) || len(environ) == 0 {
		return err
	}
	all, longest := 0, environ[0]
	for _, variable := range environ {
		all += len(variable) + 1
		if len(variable) > len(longest) {
			longest = variable
		}
	}
	name, _, _ := strings.Cut(longest, "=")
	return fmt.Errorf("%w: the environment has %d bytes, and %s, its longest variable, %d; deliver large values as files", err, all, name, len(longest))
}

// postpone schedules the restart again, and reports why it is not made now.
func (r *Runner) postpone(why error) {
	r.Log.Error("The command keeps its former secrets, because it cannot be started again", zap.Error(why))
	r.retry = time.Now().Add(r.delays.NextBackOff())
}

// statusOf returns the exit status for a command that could not be started.
func statusOf(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return statusNotFound
	}
	return statusNotRun
}

// inForeground reports whether this process is in the foreground of a terminal. In that
// case the terminal sends its signals to the whole process group, including the command.
func inForeground() bool {
	group, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// forward forwards a signal, unless the command has received it from the terminal.
func (r *Runner) forward(s syscall.Signal) {
	switch s {
	case unix.SIGTERM:
		r.leaving = true
	case unix.SIGINT:
		// A signal from the terminal does not mean that the command ends: it may
		// continue, as a shell does. The exception is a command that is not there to
		// receive it.
		r.leaving = r.leaving || r.apart || r.stopping
	}
	if !r.apart && (s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGWINCH) {
		return
	}
	r.send(s)
}

// send signals the command. The command is a child that has not been waited for, so no
// other process can have its number.
func (r *Runner) send(s syscall.Signal) {
	if err := unix.Kill(r.pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
		r.Log.Error("The command could not be sent a signal", zap.String("signal", unix.SignalName(s)), zap.Error(err))
	}
}

// react carries out the reaction to a change.
func (r *Runner) react() {
	switch {
	case r.OnChange.Restart && (r.leaving || r.stopping):
		r.retry = time.Time{}
	case r.OnChange.Restart:
		if err := r.canStart(r.Environ()); err != nil {
			r.postpone(err)
			return
		}
		r.retry = time.Time{}
		r.delays.Reset()
		r.Log.Info("Restarting the command, because secrets changed")
		r.stopping = true
		r.stop()
	case r.OnChange.Signal != 0:
		r.Log.Info("Sending the command a signal, because secrets changed", zap.String("signal", unix.SignalName(r.OnChange.Signal)))
		r.send(r.OnChange.Signal)
	}
}

// stop asks the command to end and sets a deadline.
func (r *Runner) stop() {
	if r.kill.IsZero() {
		r.kill = time.Now().Add(r.StopTimeout)
	}
	r.send(unix.SIGTERM)
}

// reap waits for all children that have ended. It reports whether the command is one of
// them, and its exit status.
func (r *Runner) reap() (status int, dead bool) {
	for {
		var ended unix.WaitStatus
		pid, err := unix.Wait4(-1, &ended, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || pid <= 0:
			if dead && r.stopping && r.apart {
				_ = unix.Kill(-r.pid, unix.SIGKILL) // leftovers would disturb the next command
			}
			return status, dead
		case pid == r.pid && ended.Signaled():
			status, dead = statusPerSignal+int(ended.Signal()), true
		case pid == r.pid:
			status, dead = ended.ExitStatus(), true
		}
	}
}
