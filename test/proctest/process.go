// Package proctest starts processes of Syncer in tests, ends them with the
// test, and waits for conditions.
package proctest

import (
	"bytes"
	"crypto/rand"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/secretsync/syncer/test/gobuild"
)

// Patience is the timeout of a wait. On a free machine, a wait takes seconds.
const Patience = 4 * time.Minute

// mostLog bounds how much of a process's output a failed test shows.
const mostLog = 50_000

// AtOnce runs n tests at once instead of one for each processor, because they mostly wait
// for other processes. -parallel takes precedence. It parses the flags.
func AtOnce(n int) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(strconv.Itoa(n))
	}
}

// Process is a started process. Its methods fail the test if the awaited event does not
// happen.
type Process struct {
	t    testing.TB
	cmd  *exec.Cmd
	out  output
	done chan struct{}
}

// output collects what a process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Start starts a process by begin; nil is by (*exec.Cmd).Start. It is killed
// when the test ends before it does. The test fails if the process races or
// panics, and shows the output if it fails.
func Start(t testing.TB, cmd *exec.Cmd, begin func(*exec.Cmd) error) *Process {
	t.Helper()
	p := &Process{t: t, cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	if cmd.Env != nil { // else it has ours
		cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=0") // instead of a second
	}
	cmd.WaitDelay = Patience // for processes that the process has started and left behind
	if begin == nil {
		begin = (*exec.Cmd).Start
	}
	if err := begin(cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // ExitCode tells
	}()
	t.Cleanup(p.end)
	return p
}

// Spawn is Start for a program that TestMain has built.
func Spawn(t testing.TB, program string, env []string, args ...string) *Process {
	t.Helper()
	if err := gobuild.Inputs(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = env
	return Start(t, cmd, nil)
}

func (p *Process) end() {
	_ = p.cmd.Process.Kill()
	<-p.done
	log := p.Log()
	if p.t.Failed() {
		p.t.Logf("the last of the output of process %d:\n%s", p.PID(), log[max(0, len(log)-mostLog):])
	}
	for _, sign := range []string{"DATA RACE", "panic:", "goroutine "} {
		if strings.Contains(log, sign) {
			p.t.Errorf("the process raced or panicked: %q is in its output", sign)
			return
		}
	}
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns the process's output so far, of both streams.
func (p *Process) Log() string { return p.out.String() }

// Lines gives the lines of the log that hold all of the texts.
func (p *Process) Lines(texts ...string) (found []string) {
	for line := range strings.Lines(p.Log()) {
		missing := func(text string) bool { return !strings.Contains(line, text) }
		if !slices.ContainsFunc(texts, missing) {
			found = append(found, line)
		}
	}
	return found
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// Kill kills the process, unless it has ended.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// MustRun fails the test if the process has ended.
func (p *Process) MustRun() {
	p.t.Helper()
	select {
	case <-p.done:
		p.t.Fatalf("the process has ended: %v", p.cmd.ProcessState)
	default:
	}
}

// ExitCode waits for the end and gives the exit status, -1 after a kill.
func (p *Process) ExitCode() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(Patience):
		p.t.Fatalf("process %d has not ended within %v", p.PID(), Patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// Exit waits for the end and checks the exit status.
func (p *Process) Exit(status int) {
	p.t.Helper()
	if code := p.ExitCode(); code != status {
		p.t.Errorf("%v instead of exit status %d", p.cmd.ProcessState, status)
	}
}

// Stop ends a process that runs until it is stopped, as Kubernetes does.
func (p *Process) Stop() {
	p.t.Helper()
	p.MustRun()
	p.Signal(syscall.SIGTERM)
	p.Exit(0)
}

// Environ returns the environment as a list of NAME=VALUE, and more.
func Environ(env map[string]string, more ...string) []string {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		more = append(more, name+"="+env[name])
	}
	return more
}

// FreeAddress returns a free loopback address. Its host is one of millions, so that no other
// process uses the same address before the intended one listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	var host [3]byte
	_, _ = rand.Read(host[:])
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", host[0], host[1], 1+host[2]%254))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// Eventually waits until the condition holds; what describes it in words. Checks become
// rarer with time and with their cost, so that the awaited processes get the processor.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	EventuallyWithin(t, Patience, what, condition)
}

// EventuallyNoError repeats the attempt until it returns no error. If that does not happen,
// it shows the last error.
func EventuallyNoError(t testing.TB, what string, attempt func() error) {
	t.Helper()
	var err error
	defer func() {
		if err != nil {
			t.Log(err)
		}
	}()
	Eventually(t, what, func() bool { err = attempt(); return err == nil })
}

// EventuallyWithin is Eventually with another timeout.
func EventuallyWithin(t testing.TB, patience time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTimer(0)
	defer look.Stop()
	for pause := 5 * time.Millisecond; ; pause = min(pause*3/2, 200*time.Millisecond) {
		select {
		case <-look.C:
		case <-deadline.C:
			t.Fatalf("not within %v: %s", patience, what)
		}
		began := time.Now()
		if condition() {
			return
		}
		look.Reset(max(pause, 2*time.Since(began)))
	}
}
