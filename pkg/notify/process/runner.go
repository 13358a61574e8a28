package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// Exit statuses, as shells have them.
const (
	statusNotFound  = 127
	statusNotRun    = 126
	statusPerSignal = 128 // plus its number
)

// Forwarded lists the signals that a Runner passes on to its command.
func Forwarded() []os.Signal {
	return []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGALRM, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT, unix.SIGWINCH}
}

// Reaction is what a Runner does to its command when secrets have changed. The
// zero Reaction is nothing.
type Reaction struct {
	Restart bool
	Signal  syscall.Signal // 0: none
}

// ParseReaction reads "restart", "none" or "signal:" and a name.
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

// Runner runs a command as an init process does: it passes signals on, and
// waits for every child of this process, also for those that it gets from
// others that ended. Nothing else in the process may start or wait for any.
// Make it with NewRunner.
type Runner struct {
	RunnerConfig
	notified chan struct{}

	// What follows is Run's.
	pid      int       // of the command, which runs
	apart    bool      // it has a process group of its own
	stopping bool      // it is to end, so that it can be started again
	leaving  bool      // it is to end for good
	kill     time.Time // when to use force; zero: not at all
}

// RunnerConfig is what a Runner runs, and how. All fields are needed.
type RunnerConfig struct {
	// Args is the command, which is looked up in PATH, and its arguments.
	Args []string
	// Environ is asked for the environment at each start.
	Environ func() []string
	// Signals brings those that are passed on; see Forwarded.
	Signals <-chan os.Signal
	// OnChange is what Notify does.
	OnChange Reaction
	// StopTimeout is what the command has to end after SIGTERM.
	StopTimeout time.Duration
	Log         *zap.Logger
}

// NewRunner makes a runner that runs nothing yet.
func NewRunner(c RunnerConfig) *Runner {
	return &Runner{RunnerConfig: c, notified: make(chan struct{}, 1)}
}

// Notify has the running command react to a change, some time soon: several
// changes may be one restart. A command that starts later needs none.
func (r *Runner) Notify(context.Context) error {
	select {
	case r.notified <- struct{}{}:
	default:
	}
	return nil
}

// Run runs the command until it ends, or makes it end when ctx does, and returns
// its exit status; 128 and the number for one that a signal ended. The error
// says why it could not be started.
func (r *Runner) Run(ctx context.Context) (status int, err error) {
	_, _ = os.FindProcess(os.Getpid()) // the first makes a child, to learn what the kernel can do
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
		case <-timer.C:
			if !r.kill.IsZero() {
				r.Log.Warn("The command has not ended in time; killing it", zap.Duration("timeout", r.StopTimeout))
				r.send(unix.SIGKILL)
				r.kill = time.Time{}
			}
		case <-children:
			switch status, dead := r.reap(); {
			case dead && !(r.stopping && !r.leaving):
				return status, nil
			case dead:
				r.Log.Info("Starting the command again", zap.Int("status", status))
				if status, err := r.start(); err != nil {
					return status, err
				}
			}
		}
		if !r.kill.IsZero() {
			timer.Reset(time.Until(r.kill))
		}
	}
}

// start starts the command, with what it needs to know of changes so far.
func (r *Runner) start() (status int, err error) {
	path, err := exec.LookPath(r.Args[0])
	if err != nil {
		return statusOf(err), err
	}
	select {
	case <-r.notified: // it has not missed this one
	default:
	}
	r.apart = !inForeground()
	p, err := os.StartProcess(path, r.Args, &os.ProcAttr{
		Env:   r.Environ(),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: r.apart},
	})
	if err != nil {
		return statusOf(err), err
	}
	r.pid, r.stopping, r.kill = p.Pid, false, time.Time{}
	return 0, p.Release() // reap waits for it
}

// statusOf is the exit status for a command that could not be started.
func statusOf(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return statusNotFound
	}
	return statusNotRun
}

// inForeground reports whether this process is in the foreground of a terminal.
// Its group then gets the terminal's signals, the command with it.
func inForeground() bool {
	group, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// forward passes a signal on, unless the command has got it from the terminal.
func (r *Runner) forward(s syscall.Signal) {
	switch s {
	case unix.SIGTERM:
		r.leaving = true
	case unix.SIGINT:
		// From the terminal it says nothing of the command, which may well live
		// on, as a shell does; unless it is not there to take it.
		r.leaving = r.leaving || r.apart || r.stopping
	}
	if !r.apart && (s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGWINCH) {
		return
	}
	r.send(s)
}

// send signals the command. It is a child that has not been waited for, so the
// number is still its own.
func (r *Runner) send(s syscall.Signal) {
	if err := unix.Kill(r.pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
		r.Log.Error("The command could not be sent a signal", zap.String("signal", unix.SignalName(s)), zap.Error(err))
	}
}

// react does what a change asks for.
func (r *Runner) react() {
	switch {
	case r.OnChange.Restart && (r.leaving || r.stopping):
	case r.OnChange.Restart:
		r.Log.Info("Restarting the command, as secrets have changed")
		r.stopping = true
		r.stop()
	case r.OnChange.Signal != 0:
		r.Log.Info("Signalling the command, as secrets have changed", zap.String("signal", unix.SignalName(r.OnChange.Signal)))
		r.send(r.OnChange.Signal)
	}
}

// stop asks the command to end, and sets it a time.
func (r *Runner) stop() {
	if r.kill.IsZero() {
		r.kill = time.Now().Add(r.StopTimeout)
	}
	r.send(unix.SIGTERM)
}

// reap waits for all children that have ended, and reports whether the command
// is among them, and how it ended.
func (r *Runner) reap() (status int, dead bool) {
	for {
		var ended unix.WaitStatus
		pid, err := unix.Wait4(-1, &ended, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || pid <= 0:
			if dead && r.stopping && r.apart {
				_ = unix.Kill(-r.pid, unix.SIGKILL) // what it has left behind would be in the way of the next
			}
			return status, dead
		case pid == r.pid && ended.Signaled():
			status, dead = statusPerSignal+int(ended.Signal()), true
		case pid == r.pid:
			status, dead = ended.ExitStatus(), true
		}
	}
}
