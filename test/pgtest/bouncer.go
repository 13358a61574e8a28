package pgtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/proctest"
)

// Bouncer starts a PgBouncer in front of the server, and returns its address as host:port.
// It has no TLS, and needs SCRAM. Settings are lines for its section "pgbouncer", and
// logins the lines of its auth_file. A server connection ends with its first release, so
// that an idle client of pool_mode=transaction has none. It ends with the test.
func (s *Server) Bouncer(t testing.TB, settings string, logins ...string) (address string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; !exists(program) {
			t.Fatal("no PgBouncer is installed; install it, such as by test/pgtest/install.sh")
		}
	}
	daemon := &proctest.Daemon{}
	t.Cleanup(daemon.End)
	addresses, err := daemon.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	address = addresses[0]
	_, port, _ := net.SplitHostPort(address)
	home, err := os.MkdirTemp(s.home, "bouncer")
	if err != nil {
		t.Fatal(err)
	}
	config, users := filepath.Join(home, "pgbouncer.ini"), filepath.Join(home, "users")
	text := fmt.Sprintf("[databases]\n* = host=%s port=%s\nfixed = host=%s port=%s dbname=postgres user=fixed\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = %s\nserver_lifetime = 0\nquery_wait_timeout = 5\n%s\n",
		s.host, s.port, s.host, s.port, port, users, settings)
	for path, content := range map[string]string{config: text, users: strings.Join(logins, "\n") + "\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{home, config, users} {
		if s.as != nil {
			if err := os.Chown(path, int(s.as.Uid), int(s.as.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := s.command("", config)
	cmd.Path = program
	var said strings.Builder
	cmd.Stderr = &said
	err = daemon.Begin(proctest.Tie(cmd, "KILL"), func() error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	if err != nil {
		t.Fatalf("PgBouncer: %v\n%s", err, said.String())
	}
	return address
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
