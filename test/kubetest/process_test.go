package kubetest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

func TestStartSaysHowToBuildTheProgram(t *testing.T) {
	for program, want := range map[string]string{
		"":                  "SYNCER_KUBE is not set",
		"/nonexistent/kube": "SYNCER_KUBE=/nonexistent/kube: ",
		"/bin/false":        "SYNCER_KUBE=/bin/false: it did not become ready\ncontrol plane: exit status 1",
	} {
		t.Setenv("SYNCER_KUBE", program)
		cp, err := kubetest.Start()
		if err == nil {
			t.Fatalf("SYNCER_KUBE=%q: started; %v", program, cp.Stop())
		}
		for _, want := range []string{want, "make ", "kube"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("SYNCER_KUBE=%q: %q does not hold %q", program, err, want)
			}
		}
	}
}

func TestNothingIsLeftAfterStop(t *testing.T) {
	cp := start(t)
	dir := filepath.Dir(cp.Kubeconfig())
	running := allProcesses(t, dir)
	if err := cp.Stop(); err != nil {
		t.Fatal(err)
	}
	awaitNothing(t, dir, running)
}

func TestNothingIsLeftAfterTheTestIsKilled(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), abandoner+"=yes")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	dir := filepath.Dir(strings.TrimSpace(line))
	running := allProcesses(t, dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // killed
	awaitNothing(t, dir, running)
}

func TestThePartsDieWithTheirParent(t *testing.T) {
	cp := start(t)
	dir := filepath.Dir(cp.Kubeconfig())
	running := allProcesses(t, dir)
	kill(t, running["up"])
	if err := cp.Stop(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Stop: %v; want that it was killed", err)
	}
	awaitNothing(t, dir, running)
}

func TestThePlaneEndsWithAPart(t *testing.T) {
	for _, part := range []string{"etcd", "kube-apiserver"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel() // two planes at once
			cp := start(t)
			dir := filepath.Dir(cp.Kubeconfig())
			running := allProcesses(t, dir)
			kill(t, running[part])
			proctest.EventuallyNoError(t, "no process left", func() error {
				if left := processes(t, dir); len(left) > 0 {
					return fmt.Errorf("still there: %v", left)
				}
				return nil
			})
			if err := cp.Stop(); err == nil || !strings.Contains(err.Error(), part+" ended: signal: killed") {
				t.Errorf("Stop: %v; want that %s ended", err, part)
			}
			awaitNothing(t, dir, running)
		})
	}
}

func start(t *testing.T) *kubetest.ControlPlane {
	t.Helper()
	cp, err := kubetest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() }) // for a test that fails early
	return cp
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// allProcesses waits until up, etcd and kube-apiserver are seen. A look at /proc
// can miss one while other processes come and go.
func allProcesses(t *testing.T, dir string) (running map[string]int) {
	t.Helper()
	proctest.EventuallyNoError(t, "three processes", func() error {
		if running = processes(t, dir); len(running) != 3 {
			return fmt.Errorf("processes before the end: %v", running)
		}
		return nil
	})
	return running
}

// processes are those of the control plane in dir, by name. The parts have it
// in their arguments; "up" is their parent.
func processes(t *testing.T, dir string) map[string]int {
	t.Helper()
	found := map[string]int{}
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		cmdline, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(cmdline), dir+"/") {
			continue // has ended, or is another's
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		found[strings.Split(string(cmdline), "\x00")[1]] = pid
		if parent := parent(pid); parent > 1 {
			found["up"] = parent
		}
	}
	return found
}

// parent is 0 when the process has ended.
func parent(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	var state string
	var parent int
	// proc(5): pid (comm) state ppid …
	if _, err := fmt.Sscan(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), &state, &parent); err != nil {
		return 0
	}
	return parent
}

// awaitNothing waits until the processes have ended and the directory has
// gone. A zombie, which has no arguments, has ended.
func awaitNothing(t *testing.T, dir string, running map[string]int) {
	t.Helper()
	proctest.EventuallyNoError(t, "no process and no directory", func() error {
		for name, pid := range running {
			cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if err == nil && strings.Contains(string(cmdline), name) {
				return fmt.Errorf("%s is still there: %q", name, cmdline)
			}
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is still there: %v", dir, err)
		}
		return nil
	})
}
