package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/test/proctest"
)

// TestAnInterruptIsTheAnswer: ^C ends a command that waits for its input, as well as one
// that waits for a server.
func TestAnInterruptIsTheAnswer(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"a manifest": {"validate", "-f", "-"},
		"values":     {"set", "-f", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, input := reading(t, nil, args...)
			awaitRead(t, input)
			interrupted(t, p)
		})
	}
	t.Run("a server", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		asked := make(chan struct{})
		w.Server.Intercept(func(http.Handler) http.Handler {
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				select {
				case asked <- struct{}{}:
				case <-r.Context().Done():
				}
				<-r.Context().Done()
			})
		})
		p := spawn(t, w.Environ(), "node", "list")
		<-asked
		interrupted(t, p)
	})
	t.Run("a status", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		p := spawn(t, nil, "status", "--url", "http://"+l.Addr().String())
		silent, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		interrupted(t, p)
	})
}

// TestATerminatedCommandSaysSo: no command shows how its parts stop each other.
func TestATerminatedCommandSaysSo(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"a value": {"set", "a/b"},
		"values":  {"set", "-f", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p, input := reading(t, w.Environ(), args...)
			awaitRead(t, input)
			ended(t, p, syscall.SIGTERM, 1, "syncer: terminated")
		})
	}
}

// awaitRead waits until a command has read the byte in its input.
func awaitRead(t *testing.T, input *os.File) {
	t.Helper()
	eventually(t, "the command to read its input", func() bool {
		left, err := unix.IoctlGetInt(int(input.Fd()), unix.TIOCINQ)
		return err == nil && left == 0
	})
}

// reading starts a command whose standard input is a pipe with one byte in it.
func reading(t *testing.T, env []string, args ...string) (*proctest.Process, *os.File) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); out.Close() })
	if _, err := out.WriteString("a"); err != nil {
		t.Fatal(err)
	}
	p := spawnBy(t, func(cmd *exec.Cmd) error { cmd.Stdin = in; return cmd.Start() }, env, args...)
	return p, in
}

// interrupted sends ^C and wants it to be said, and nothing else.
func interrupted(t *testing.T, p *proctest.Process) {
	t.Helper()
	ended(t, p, syscall.SIGINT, 128+int(syscall.SIGINT), "syncer: interrupted")
}

// ended sends a signal and wants one line and a status.
func ended(t *testing.T, p *proctest.Process, signal syscall.Signal, status int, want string) {
	t.Helper()
	p.Signal(signal)
	p.Exit(status)
	if got := strings.TrimSpace(p.Log()); got != want {
		t.Errorf("said: %s, want %s", got, want)
	}
}
