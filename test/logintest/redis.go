// Package logintest starts genuine servers whose logins tests rotate.
package logintest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/test/pgtest"
	"github.com/secretsync/syncer/test/proctest"
)

// Redis is a server that listens at addresses of loopback, with TLS and without. Its user
// default needs no password.
type Redis struct {
	Addr, TLSAddr string // host:port
	CA            string // file with the certificate that signed its certificate
	ACLFile       string // that its configuration names; it is empty at first

	home   string
	args   []string
	daemon proctest.Daemon
}

// StartRedis starts a server in a temporary folder, with further options, such as
// "--replicaof 127.0.0.1 6379". It ends with the test, and with the process.
func StartRedis(t testing.TB, options ...string) *Redis {
	t.Helper()
	s := &Redis{}
	t.Cleanup(func() {
		s.daemon.End()
		if err := os.RemoveAll(s.home); err != nil {
			t.Error(err)
		}
	})
	if err := s.settle(options); err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
	return s
}

// settle finds a folder and addresses, and writes the configuration.
func (s *Redis) settle(options []string) (err error) {
	if s.home, err = os.MkdirTemp("", "redis"); err != nil {
		return err
	}
	program, err := redisProgram()
	if err != nil {
		return err
	}
	// The program acts as a server if it has this name.
	server := filepath.Join(s.home, "redis-server")
	if err := os.Symlink(program, server); err != nil {
		return err
	}
	addresses, err := s.daemon.Addresses(2)
	if err != nil {
		return err
	}
	var ports [2]string
	for i, address := range addresses {
		_, ports[i], _ = net.SplitHostPort(address)
	}
	s.Addr, s.TLSAddr = addresses[0], addresses[1]
	s.CA, s.ACLFile = filepath.Join(s.home, "ca.crt"), filepath.Join(s.home, "acl", "users.acl")
	certificate, key, authority, err := pgtest.Certificates("127.0.0.1")
	err = errors.Join(err, os.Mkdir(filepath.Dir(s.ACLFile), 0o700))
	for path, content := range map[string][]byte{"ca.crt": authority, "own.crt": certificate, "own.key": key, "acl/users.acl": nil} {
		err = errors.Join(err, os.WriteFile(filepath.Join(s.home, path), content, 0o600))
	}
	s.args = []string{server, "--bind", "127.0.0.1", "--port", ports[0], "--tls-port", ports[1], "--unixsocket", s.socket(), "--dir", s.home, "--save", "", "--repl-diskless-sync-delay", "0",
		"--tls-ca-cert-file", s.CA, "--tls-cert-file", filepath.Join(s.home, "own.crt"), "--tls-key-file", filepath.Join(s.home, "own.key"), "--tls-auth-clients", "no"}
	for _, option := range append([]string{"--aclfile " + s.ACLFile}, options...) {
		s.args = append(s.args, strings.Split(option, " ")...)
	}
	return err
}

// redisProgram returns the path of the server's program. Debian's is in the package
// redis-tools, under the name of another tool.
func redisProgram() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server", "redis-check-rdb"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Redis is installed; install it, such as by test/logintest/install.sh")
}

func (s *Redis) socket() string { return filepath.Join(s.home, "socket") }

// Restart starts the server again after Crash, with what it has stored.
func (s *Redis) Restart(t testing.TB) {
	t.Helper()
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
}

// begin runs the server, and returns when it takes log-ins.
func (s *Redis) begin() (err error) {
	cmd := exec.Command(s.args[0], s.args[1:]...)
	cmd.Dir = s.home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said strings.Builder
	cmd.Stdout = &said
	err = s.daemon.Begin(proctest.Tie(cmd, "KILL"), func() error {
		answer, err := s.run("PING")
		if err == nil && answer != "PONG" {
			err = errors.New(answer)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("Redis: %w\n%s", err, said.String())
	}
	return nil
}

// Crash ends the server at once.
func (s *Redis) Crash() { s.daemon.Crash() }

// Run runs a command as the user default, and returns the answer in lines.
func (s *Redis) Run(t testing.TB, command ...string) string {
	t.Helper()
	answer, err := s.run(command...)
	if err != nil {
		t.Fatalf("%q: %v", command, err)
	}
	return answer
}

// Paste runs lines as someone who pastes them into redis-cli.
func (s *Redis) Paste(t testing.TB, lines string) {
	t.Helper()
	if answer, err := s.cli(lines); err != nil {
		t.Fatalf("%s: %v: %s", lines, err, answer)
	}
}

func (s *Redis) run(command ...string) (string, error) { return s.cli("", command...) }

func (s *Redis) cli(input string, command ...string) (string, error) {
	cmd := exec.Command("redis-cli", append([]string{"-e", "-s", s.socket()}, command...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	answer := strings.TrimSpace(string(out))
	if err != nil {
		err = fmt.Errorf("%w: %s", err, answer)
	}
	return answer, err
}
