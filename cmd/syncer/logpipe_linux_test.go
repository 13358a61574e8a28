package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/test/proctest"
)

// logTo starts processes whose standard error is a file.
func logTo(f *os.File) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		cmd.Stderr = f
		return cmd.Start()
	}
}

// fullPipe makes the smallest pipe that there is, and fills it.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w = newPipe(t)
	fd := int(w.Fd())
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, 4096)
	if err := errors.Join(err, unix.SetNonblock(fd, true)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = unix.Write(fd, make([]byte, 1024))
	}
	if !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	return r, w
}

func newPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// works checks that a sidecar delivers, follows a change and its
// configuration, and ends when it is told to.
func (w *world) works(p *proctest.Process) {
	w.Helper()
	w.await("db.json", w.Value["db/password"])
	w.awaitProvided()
	w.Renew("db/password")
	w.await("db.json", w.Value["db/password"])
	w.Group("late", "json", "late/password")
	w.Annotate()
	w.await("late.json", w.Value["late/password"])
	p.Stop()
}

func TestALogThatNobodyReadsStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Annotations["log-level"] = "debug"
	w.Group("db", "json", "db/password")
	r, log := fullPipe(t)
	p := w.startBy(logTo(log))
	w.works(p)
	if err := log.Close(); err != nil { // the only one left, as the process has ended
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || strings.Trim(string(text), "\x00") != "" {
		t.Errorf("in the full pipe there is %q, %v", text, err)
	}
}

func TestALogThatIsClosedStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	r, log := newPipe(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	w.works(w.startBy(logTo(log)))
}

func TestAOneShotProcessEndsThoughNobodyReadsItsLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.oneShot("init", 0)
	w.Group("db", "json", "db/password")
	_, log := fullPipe(t)
	w.startBy(logTo(log)).Exit(0)
	w.await("db.json", w.Value["db/password"])
}

// TestTheLogIsWholeAtTheEnd reads nothing before the process wants to end.
func TestTheLogIsWholeAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	w.Annotations["log-format"] = "json"
	r, log := fullPipe(t)
	p := w.startBy(logTo(log))
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	w.awaitProvided()
	p.Signal(syscall.SIGTERM)
	awaitSignal(t, p)
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	p.Exit(0)
	for _, line := range []string{"Parsing annotations", `"Annotations parsed"`, `"msg":"Ending"`} {
		if strings.Count(string(text), line) != 1 {
			t.Errorf("%q is not once in the log:\n%s", line, text)
		}
	}
}

func TestExecAndItsCommandOutliveAClosedLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	r, log := newPipe(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	// The command itself is to end by SIGPIPE, as it would without Syncer.
	p := w.execBy(logTo(log), nil, "sh", "-c", `sh -c 'echo lost >&2'; echo $? > "$world/log"; exec sh -c 'kill -PIPE $$; sleep 60'`)
	p.Exit(128 + int(unix.SIGPIPE))
	if status := strings.TrimSpace(w.noted("log")); status != "141" {
		t.Errorf("a command that writes to the closed log ended with status %s, want 141", status)
	}
}

// TestHangUpChangesNothing: what a reload would do is done by itself.
func TestHangUpChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	p := w.start()
	w.awaitProvided()
	before := w.look()
	p.Signal(syscall.SIGHUP)
	awaitSignal(t, p)
	w.beat()
	w.beat()
	w.untouched(before)
	p.Stop()
}
