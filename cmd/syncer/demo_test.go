package main

import (
	"os"
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
