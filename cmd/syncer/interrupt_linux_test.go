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
			p, input := reading(t, args...)
			eventually(t, "the command to read its input", func() bool {
				left, err := unix.IoctlGetInt(int(input.Fd()), unix.TIOCINQ)
				return err == nil && left == 0
			})
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

// reading starts a command whose standard input is a pipe with one byte in it.
func reading(t *testing.T, args ...string) (*proctest.Process, *os.File) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); out.Close() })
	if _, err := out.WriteString("a"); err != nil {
		t.Fatal(err)
	}
	p := spawnBy(t, func(cmd *exec.Cmd) error { cmd.Stdin = in; return cmd.Start() }, nil, args...)
	return p, in
}

// interrupted sends ^C and wants it to be said, and nothing else.
func interrupted(t *testing.T, p *proctest.Process) {
	t.Helper()
	p.Signal(syscall.SIGINT)
	p.Exit(128 + int(syscall.SIGINT))
	if got := strings.TrimSpace(p.Log()); got != "syncer: interrupted" {
		t.Errorf("said: %s", got)
	}
}
