package main

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// demoArrival is a line about a change that arrived, with how long it took.
var demoArrival = regexp.MustCompile(`(?m)^ *(\d+) ms  (\S+)`)

func TestDemoEndsByItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := spawn(t, []string{"TMPDIR=" + dir}, "demo", "--for", "15s")
	p.Exit(0)
	seen := map[string]bool{}
	for _, m := range demoArrival.FindAllStringSubmatch(p.Log(), -1) {
		seen[m[2]] = true
	}
	for _, what := range []string{"first", "rotated", "edited", "revoked"} {
		if !seen[what] {
			t.Errorf("nothing was %s", what)
		}
	}
	if len(p.Lines("changes arrived, each in its file")) != 1 {
		t.Error("no last line")
	}
	if len(p.Lines("Page     http://127.0.0.1:", "/status")) != 1 {
		t.Error("no address of the page")
	}
	nothingLeft(t, dir)
}

func TestDemoOfARotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := spawn(t, []string{"TMPDIR=" + dir}, "demo", "--rotate")
	p.Exit(0)
	for _, what := range []string{"made ", "is the primary", "a new one is asked for", "retired ", "and none was rejected"} {
		if !strings.Contains(p.Log(), what) {
			t.Errorf("it does not say %q", what)
		}
	}
	nothingLeft(t, dir)
}

func TestDemoStopsOnCtrlC(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := spawn(t, []string{"TMPDIR=" + dir}, "demo", "--for", "1h")
	// The moment after a change that arrived quickly is one without a change
	// under way: the next comes two seconds after the last.
	eventually(t, "a change that arrived quickly", func() bool {
		changes := demoArrival.FindAllStringSubmatch(p.Log(), -1)
		if len(changes) <= 5 || changes[len(changes)-1][2] == "first" {
			return false
		}
		took, err := strconv.Atoi(changes[len(changes)-1][1])
		return err == nil && took < 1200
	})
	p.Signal(syscall.SIGINT)
	p.Exit(0)
	nothingLeft(t, dir)
}

func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestDemoWhoseOutputIsClosed ends and leaves no folder, as before "head".
func TestDemoWhoseOutputIsClosed(t *testing.T) {
	for _, args := range [][]string{{"demo", "--for", "1h"}, {"demo", "--rotate"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env, cmd.Stdout = []string{asCommand + "=1", "TMPDIR=" + dir}, write
			_ = read.Close()
			err = cmd.Run()
			_ = write.Close()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
				t.Errorf("it ends with %v", err)
			}
			nothingLeft(t, dir)
		})
	}
}
