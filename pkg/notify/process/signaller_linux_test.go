package process_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/pkg/notify/process"
	"github.com/secretsync/syncer/test/podtest"
	"github.com/secretsync/syncer/test/proctest"
)

// The test binary in a Pod: it sends signals, or waits for its input to end.
const (
	asSender = "PROCESS_TEST_SENDER" // who is narrowed to, as JSON
	asProbe  = "PROCESS_TEST_PROBE"
)

func TestMain(m *testing.M) {
	podtest.Main()
	switch {
	case os.Getenv(asSender) != "":
		send()
	case os.Getenv(asProbe) != "":
		_, _ = bytes.NewBuffer(nil).ReadFrom(os.Stdin)
	default:
		goleak.VerifyTestMain(m)
	}
}

// narrowed is what a sender is told.
type narrowed struct{ User, Command string }

// outcome is what a sender answers.
type outcome struct {
	Signalled, Refused int
	Err                string
}

// send is the sender's main.
func send() {
	var to narrowed
	if err := json.Unmarshal([]byte(os.Getenv(asSender)), &to); err != nil {
		panic(err)
	}
	var result outcome
	s, err := process.NewSignaller(process.SignalConfig{
		Signal: unix.SIGUSR1, User: to.User, Command: to.Command, Log: zap.NewNop(),
		Sent: func(signalled, refused int) { result.Signalled, result.Refused = signalled, refused },
	})
	if err == nil {
		err = s.Notify(context.Background())
	}
	if err != nil {
		result.Err = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		panic(err)
	}
}

// self copies the test binary to where every user can run it.
func self(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "self")
	program, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(path, program, 0o755)
	}
	if err == nil {
		err = os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// tell sends SIGUSR1 from a container whose processes are the user's.
func tell(t *testing.T, run func(*exec.Cmd, int) error, program string, user int, to narrowed) outcome {
	t.Helper()
	text, err := json.Marshal(to)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = []string{asSender + "=" + string(text)}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := run(cmd, user); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the sender: %v", err)
	}
	var result outcome
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// assert compares an outcome; the error must have the text in it.
func (got outcome) assert(t *testing.T, what string, want outcome) {
	t.Helper()
	if got.Signalled != want.Signalled || got.Refused != want.Refused || !strings.Contains(got.Err, want.Err) || want.Err == "" && got.Err != "" {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

const alice, bob = 1000, 1001 // user ids

func TestSignalsReachTheApplicationAndNobodyElse(t *testing.T) {
	pod, program := podtest.Start(t), self(t)
	probe := exec.Command(program)
	probe.Env = []string{asProbe + "=1"}
	hold, err := probe.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := pod.Run(probe, 0); err != nil {
		t.Fatal(err)
	}
	web, worker := pod.App("web", alice), pod.App("worker", bob)

	for range 3 {
		tell(t, pod.Run, program, 0, narrowed{}).assert(t, "to all", outcome{Signalled: 2})
		web.Gets("SIGUSR1")
		worker.Gets("SIGUSR1")
	}
	tell(t, pod.Run, program, 0, narrowed{User: fmt.Sprint(bob)}).assert(t, "to one user", outcome{Signalled: 1})
	worker.Gets("SIGUSR1")
	tell(t, pod.Run, program, 0, narrowed{Command: "web"}).assert(t, "to one command", outcome{Signalled: 1})
	web.Gets("SIGUSR1")
	tell(t, pod.Run, program, 0, narrowed{User: fmt.Sprint(bob), Command: "web"}).assert(t, "to nobody", outcome{})

	if extra := append(web.Got(), worker.Got()...); len(extra) > 0 {
		t.Errorf("signals that nobody sent: %v", extra)
	}
	if !pod.Lives() {
		t.Error("/pause got a signal")
	}
	if err := hold.Close(); err != nil {
		t.Fatal(err)
	}
	if err := probe.Wait(); err != nil {
		t.Errorf("a probe that runs the same executable got a signal: %v", err)
	}
}

func TestProcessesOfOtherUsersAreCounted(t *testing.T) {
	pod, program := podtest.Start(t), self(t)
	tell(t, pod.Run, program, alice, narrowed{}).assert(t, "to an empty Pod", outcome{})
	pod.App("other", bob)
	tell(t, pod.Run, program, alice, narrowed{}).assert(t, "to others only", outcome{Refused: 1, Err: "application's user"})
	own := pod.App("own", alice)
	tell(t, pod.Run, program, alice, narrowed{}).assert(t, "to own and others", outcome{Signalled: 1, Refused: 1})
	own.Gets("SIGUSR1")
}

func TestAProcessWhoseFirstThreadHasEndedIsNoZombie(t *testing.T) {
	pod, program := podtest.Start(t), self(t)
	headless := pod.App("headless", alice)
	proctest.Eventually(t, "the first thread ended", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", headless.PID()))
		return err == nil && bytes.Contains(stat, []byte(") Z "))
	})
	tell(t, pod.Run, program, 0, narrowed{Command: "headless"}).assert(t, "to a command", outcome{Signalled: 1})
	headless.Gets("SIGUSR1")
}

func TestANamespaceThatIsNotSharedIsTold(t *testing.T) {
	tell(t, podtest.Alone, self(t), 0, narrowed{}).assert(t, "to nobody", outcome{Err: "shareProcessNamespace: true"})
}

func TestAnUnknownUserIsAnError(t *testing.T) {
	_, err := process.NewSignaller(process.SignalConfig{Signal: unix.SIGHUP, User: "no-such-user"})
	if err == nil || !strings.Contains(err.Error(), `"no-such-user"`) {
		t.Errorf("error %v, want one that names the user", err)
	}
	if _, err := process.NewSignaller(process.SignalConfig{Signal: unix.SIGHUP, User: "root"}); err != nil {
		t.Errorf("root is not known: %v", err)
	}
}
