package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// parseSignal returns the signal with a name such as SIGHUP.
func parseSignal(name string) (syscall.Signal, error) {
	if signal := unix.SignalNum(name); signal != 0 {
		return signal, nil
	}
	return 0, fmt.Errorf("%q is not the name of a signal; use one such as SIGHUP, SIGTERM or SIGUSR1", name)
}

// SignalConfig says which signal is sent to which processes.
type SignalConfig struct {
	Signal syscall.Signal
	// User, if not empty, selects the processes of one user: a user id, or a name in the
	// /etc/passwd of this container.
	User string
	// Command, if not empty, selects the processes that run a command: the last part of
	// the path of the executable, or of argv[0].
	Command string
	// Sent, if not nil, is called after each sending with two numbers: the processes that
	// took the signal, and those that could not be signalled.
	Sent func(signalled, refused int)
	Log  *zap.Logger
}

// Signaller sends a signal to the application's processes. These are all visible
// processes in the Pod's shared process namespace, except
//
//   - /pause, which holds the Pod together,
//   - this process, its ancestors and its descendants, and those that run
//     the same executable file, such as a probe,
//   - kernel threads and zombies.
type Signaller struct {
	config SignalConfig
	user   int // −1: any
	proc   string
}

// NewSignaller looks up the user.
func NewSignaller(c SignalConfig) (s *Signaller, err error) {
	s = &Signaller{config: c, user: -1, proc: "/proc"}
	if c.User != "" {
		s.user, err = userID(c.User)
	}
	return s, err
}

func userID(name string) (int, error) {
	if id, err := strconv.Atoi(name); err == nil && id >= 0 {
		return id, nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		return 0, fmt.Errorf("user %q is neither a number nor a user of this container; use the number", name)
	}
	return strconv.Atoi(found.Uid)
}

var (
	errNotShared = errors.New("no process of another container can be seen, so none was sent a signal; the Pod needs shareProcessNamespace: true")
	errNodes     = errors.New("these are the processes of the whole node (hostPID: true), so none was sent a signal; use shareProcessNamespace: true, or name the command")
	errForeign   = errors.New("the folder /proc shows another process namespace than this process is in, so no process was sent a signal")
)

// Notify sends the signal once to each process and logs how many took it. A process that
// has ended, or that Syncer may not signal, is not an error. It is an error if processes
// exist but none took the signal, or if the namespace is not the Pod's.
func (s *Signaller) Notify(context.Context) error {
	if self, err := os.Readlink(filepath.Join(s.proc, "self")); err != nil || self != strconv.Itoa(os.Getpid()) {
		return errors.Join(errForeign, err)
	}
	entries, err := listProcesses(s.proc)
	if err != nil {
		return fmt.Errorf("looking for the application's processes: %w", err)
	}
	chosen, err := s.choose(entries, os.Getpid())
	if err != nil {
		return err
	}
	signalled, refused, why := 0, 0, error(nil)
	for _, e := range chosen {
		switch err := s.send(e); {
		case err == nil:
			signalled++
		case !errors.Is(err, os.ErrProcessDone):
			refused, why = refused+1, err
		}
	}
	if s.config.Sent != nil {
		s.config.Sent(signalled, refused)
	}
	level := zap.InfoLevel
	if signalled == 0 {
		level = zap.WarnLevel
	}
	s.config.Log.Log(level, "Signal sent to the application", zap.String("signal", unix.SignalName(s.config.Signal)),
		zap.Int("processes", signalled), zap.Int("refused", refused))
	if signalled == 0 && refused > 0 {
		return fmt.Errorf("none of %d processes could be sent %s: %w; run this container as the application's user", refused, unix.SignalName(s.config.Signal), why)
	}
	return nil
}

// send signals only the process that was listed, even if another process has its number
// now: send holds the process, not the number.
func (s *Signaller) send(e entry) error {
	p, err := os.FindProcess(e.pid)
	if err != nil {
		return err
	}
	defer func() { _ = p.Release() }()
	now, err := readProcess(s.proc, e.pid, nil)
	if err != nil || now.started != e.started {
		return os.ErrProcessDone
	}
	return p.Signal(s.config.Signal)
}

// choose returns the processes that get the signal.
func (s *Signaller) choose(entries []entry, self int) (chosen []entry, err error) {
	ours := family(entries, self)
	foreign, node := false, false
	for _, e := range entries {
		node = node || e.kernel
		if e.kernel || e.dead || e.own || ours[e.pid] {
			continue
		}
		foreign = true
		if !e.pause() && s.wants(e) {
			chosen = append(chosen, e)
		}
	}
	switch {
	case node && s.config.Command == "":
		return nil, errNodes
	case !foreign:
		return nil, errNotShared
	}
	return chosen, nil
}

// family returns the process self, its ancestors and its descendants.
func family(entries []entry, self int) map[int]bool {
	parent := make(map[int]int, len(entries))
	for _, e := range entries {
		parent[e.pid] = e.parent
	}
	ours := map[int]bool{}
	for pid := self; pid != 0 && !ours[pid]; pid = parent[pid] {
		ours[pid] = true
	}
	for _, e := range entries {
		for pid, steps := e.pid, 0; pid != 0 && steps <= len(entries); pid, steps = parent[pid], steps+1 {
			if pid == self {
				ours[e.pid] = true
			}
		}
	}
	return ours
}

// pausePath is the executable of the container that holds a Pod's namespaces.
const pausePath = "/pause"

func (e entry) pause() bool { return e.executable == pausePath || e.argument == pausePath }

func (s *Signaller) wants(e entry) bool {
	if s.user >= 0 && e.user != s.user {
		return false
	}
	command := s.config.Command
	return command == "" || e.executable != "" && filepath.Base(e.executable) == command ||
		e.argument != "" && filepath.Base(e.argument) == command
}
