package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/test/podtest"
)

// As the first process of a container, exec gets the orphans of all others.
func TestExecWaitsForOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	script := `
		for i in 1 2 3 4 5 6 7 8 9 10; do (sh -c 'sleep 0.1 & echo $! >> "$world/orphans"' &); done
		while [ "$(wc -l < "$world/orphans")" -lt 10 ]; do sleep 0.05; done
		while :; do
			left=0
			for pid in $(cat "$world/orphans"); do if [ -e "/proc/$pid" ]; then left=1; fi; done
			if [ $left = 0 ]; then exit 9; fi
			sleep 0.05
		done`
	alone := func(cmd *exec.Cmd) error { return podtest.Alone(cmd, 0) }
	w.execBy(alone, nil, "sh", "-c", script).Exit(9)
}

// At a terminal Ctrl-C goes to both. A command that lives on is not leaving.
func TestExecAtATerminalRestartsACommandThatHasOutlivedCtrlC(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.environment("db", "db/password")
	keys, screen := newTerminal(t)
	onTerminal := func(cmd *exec.Cmd) error {
		cmd.Stdin, cmd.SysProcAttr = screen, &syscall.SysProcAttr{Setsid: true, Setctty: true}
		return cmd.Start()
	}
	script := `trap 'echo lives >> "$world/log"' INT; test -t 0 && echo "$password" >> "$world/log"` + waits
	p := w.execBy(onTerminal, []string{"--env", "db"}, "sh", "-c", script)
	w.awaitNoted("log", w.Value["db/password"])
	if _, err := keys.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	w.awaitNoted("log", "lives")
	w.renewAndAwait("db/password", "log")
	p.Signal(syscall.SIGTERM)
	p.Exit(128 + 15)
}

// newTerminal makes one; what is typed is written to keys.
func newTerminal(t *testing.T) (keys, screen *os.File) {
	t.Helper()
	open := func(path string) *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	keys = open("/dev/ptmx")
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys, open(fmt.Sprintf("/dev/pts/%d", number))
}

// The command is given no credential of Syncer's, and finds none: not in the
// process that started it, which is another user's only for root.
func TestExecKeepsItsCredentialsToItself(t *testing.T) {
	t.Parallel()
	for _, user := range []int{0, 12345} {
		t.Run(fmt.Sprint(user), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.environment("db", "db/password")
			w.Env["JWT_TOKEN_PATH"], w.Env["OTHER"] = w.Path("token"), "stays"
			podtest.Reachable(t, os.Args[0])
			podtest.Reachable(t, w.Path("secrets"))
			if err := errors.Join(os.Chmod(w.Dir, 0o777), os.Chmod(w.Path("tmp"), 0o777)); err != nil {
				t.Fatal(err)
			}
			begin := func(cmd *exec.Cmd) error {
				return errors.Join(os.Chmod(w.Path("annotations"), 0o644), podtest.Alone(cmd, user))
			}
			script := `env > "$world/seen"; tr '\0' '\n' < "/proc/$PPID/environ" > "$world/searched"; echo done > "$world/end"`
			p := w.execBy(begin, []string{"--env", "db"}, "sh", "-c", script)
			p.Exit(0)
			if !strings.Contains(w.noted("seen"), "OTHER=stays\n") || !strings.Contains(w.noted("seen"), w.Value["db/password"]) || w.noted("end") == "" {
				t.Errorf("the command has not seen its environment, but %s", w.noted("seen"))
			}
			for _, name := range config.CredentialVariables() {
				if strings.Contains("\n"+w.noted("seen"), "\n"+name+"=") {
					t.Errorf("the command was given %s", name)
				}
			}
			if user != 0 && w.noted("searched") != "" {
				t.Error("the command can read Syncer's environment")
			}
		})
	}
}
