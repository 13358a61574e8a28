package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// choose returns the process ids that a signaller picks.
func choose(t *testing.T, s Signaller, entries ...entry) ([]int, error) {
	t.Helper()
	chosen, err := s.choose(entries, 100)
	var pids []int
	for _, e := range chosen {
		pids = append(pids, e.pid)
	}
	return pids, err
}

func TestWhoIsSpared(t *testing.T) {
	pids, err := choose(t, Signaller{user: -1},
		entry{pid: 1, executable: "/pause", argument: "pause"},
		entry{pid: 2, argument: "/pause"}, // of another user: the executable may not be read
		entry{pid: 3, executable: "/bin/sh"},
		entry{pid: 4, parent: 3, executable: "/app"},
		entry{pid: 98, executable: "/bin/tini"},             // the grandparent
		entry{pid: 99, parent: 98, executable: "/bin/sh"},   // the parent
		entry{pid: 100, parent: 99, executable: "/syncer"},  // this process
		entry{pid: 101, parent: 100, executable: "/child"},  // its child
		entry{pid: 102, parent: 101, executable: "/grand"},  // and grandchild
		entry{pid: 103, executable: "/syncer", own: true},   // a probe
		entry{pid: 104, executable: "/syncer"},              // another file of that name
		entry{pid: 105, parent: 4, dead: true},              // a zombie
		entry{pid: 106, parent: 99, executable: "/sibling"}, // what the parent also started
	)
	if want := []int{3, 4, 104, 106}; err != nil || !slices.Equal(pids, want) {
		t.Errorf("signals go to %v (%v), want %v", pids, err, want)
	}
}

func TestTheProcessesOfANodeAreSparedUnlessOneIsNamed(t *testing.T) {
	node := []entry{
		{pid: 1, executable: "/sbin/init"},
		{pid: 2, kernel: true},
		{pid: 50, executable: "/usr/bin/nginx"},
		{pid: 100, executable: "/syncer"},
	}
	for _, s := range []Signaller{{user: -1}, {user: 0}} {
		if pids, err := choose(t, s, node...); !errors.Is(err, errNodes) || len(pids) > 0 {
			t.Errorf("signals go to %v of a node (%v)", pids, err)
		}
	}
	pids, err := choose(t, Signaller{user: -1, config: SignalConfig{Command: "nginx"}}, node...)
	if want := []int{50}; err != nil || !slices.Equal(pids, want) {
		t.Errorf("signals go to %v (%v), want %v", pids, err, want)
	}
}

func TestACommandIsThatOfTheExecutableOrOfItsArgument(t *testing.T) {
	pids, err := choose(t, Signaller{user: -1, config: SignalConfig{Command: "nginx"}},
		entry{pid: 1, executable: "/usr/sbin/nginx", argument: "nginx: master process"},
		entry{pid: 2, argument: "/opt/nginx"},
		entry{pid: 3, executable: "/usr/bin/busybox", argument: "nginx"},
		entry{pid: 4, executable: "/opt/nginx/other", argument: "nginx-exporter"},
		entry{pid: 5},
		entry{pid: 100},
	)
	if want := []int{1, 2, 3}; err != nil || !slices.Equal(pids, want) {
		t.Errorf("signals go to %v (%v), want %v", pids, err, want)
	}
}

func TestTheFirstUserIsRoot(t *testing.T) {
	for name, want := range map[string]string{"": "[1 2]", "0": "[1]", "1": "[2]", "2": "[]"} {
		s, err := NewSignaller(SignalConfig{User: name})
		if err != nil {
			t.Fatal(err)
		}
		pids, err := choose(t, *s, entry{pid: 1, user: 0, executable: "/a"}, entry{pid: 2, user: 1, executable: "/b"}, entry{pid: 100})
		if err != nil || fmt.Sprint(pids) != want {
			t.Errorf("user %q: signals go to %v (%v), want %s", name, pids, err, want)
		}
	}
}

func TestAProcessIsReadWhateverItsName(t *testing.T) {
	var e entry
	stat := "42 (a) b (c)) Z 7 1 1 0 -1 2097152 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0"
	if err := e.parseStat(stat); err != nil || e.parent != 7 || !e.kernel || !e.dead || e.headless || e.started != 4711 {
		t.Errorf("%+v (%v)", e, err)
	}
	for _, bad := range []string{"", "42 (a", "42 (a) S", "42 (a) S x 1 1 0 -1 x 0 0 0 0 0 0 0 0 20 0 1 0 x"} {
		if err := e.parseStat(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	for _, more := range []int{-1, 0, 1} { // the start is the 20th field after the command
		got := e.parseStat("42 (a) S 7 1 1 0 -1 0" + strings.Repeat(" 1", 13+more))
		if (got == nil) != (more >= 0) {
			t.Errorf("%d fields: %v", 20+more, got)
		}
	}
	for text, want := range map[string][2]bool{"S 7 1 1 0 -1 0": {}, "Z 7 1 1 0 -1 0": {true, false}, "X 7 1 1 0 -1 0": {true, false}} {
		for threads, want := range [][2]bool{want, want, {false, want[0]}} {
			if err := e.parseStat("42 (a) " + text + strings.Repeat(" 0", 10) + fmt.Sprintf(" %d 0 1", threads)); err != nil || e.dead != want[0] || e.headless != want[1] {
				t.Errorf("%s with %d threads: %+v (%v)", text, threads, e, err)
			}
		}
	}
	if _, err := userOf("Uid:\t1\n"); err == nil {
		t.Error("a status without the effective user was read")
	}
	if user, err := userOf("Name:\tx\nUid:\t1\t2\t3\t4\n"); err != nil || user != 2 {
		t.Errorf("the effective user is %d (%v), want 2", user, err)
	}
	if _, err := userOf("Name:\tx\n"); err == nil {
		t.Error("a status without users was read")
	}
}

func TestTheProcOfAnotherNamespaceIsNotBelieved(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(strconv.Itoa(os.Getpid()+1), filepath.Join(dir, "self")); err != nil {
		t.Fatal(err)
	}
	s := Signaller{user: -1, proc: dir, config: SignalConfig{Signal: unix.SIGUSR1, Log: zap.NewNop()}}
	if err := s.Notify(t.Context()); !errors.Is(err, errForeign) {
		t.Errorf("error %v, want that /proc is foreign", err)
	}
}

func TestANumberThatWasUsedAgainIsNotSignalled(t *testing.T) {
	self, err := readProcess("/proc", os.Getpid(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := Signaller{proc: "/proc", config: SignalConfig{Signal: 0}}
	if err := s.send(self); err != nil {
		t.Errorf("this process: %v", err)
	}
	self.started--
	if err := s.send(self); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("an earlier process with this number: %v, want that it is gone", err)
	}
}

func TestSignalNames(t *testing.T) {
	if s, err := parseSignal("SIGHUP"); err != nil || s != unix.SIGHUP {
		t.Errorf("SIGHUP is %v (%v)", s, err)
	}
	for _, bad := range []string{"", "HUP", "sighup", "1", "SIGNOTHING"} {
		if _, err := parseSignal(bad); err == nil {
			t.Errorf("%q is a signal", bad)
		}
	}
}
