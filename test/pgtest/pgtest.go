// Package pgtest starts a genuine PostgreSQL for a test binary.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/secretsync/syncer/test/proctest"
)

// patience is how long a server may take to start or end.
const patience = time.Minute

// Server is a PostgreSQL that listens at an address of loopback, with TLS and
// without, and at a socket. It logs every statement. Log-ins need a password by
// SCRAM, but for the superuser at the socket, and for who is in the role
// "trusted". Who is in the role "cleartext" sends it as it is.
type Server struct {
	Addr   string // host:port, of loopback
	Socket string // host:port, where the host is a folder that only the server's user and root may enter
	CA     string // file with the certificate that signed its certificate

	home, bin  string
	host, port string
	as         *syscall.Credential // nil: as who runs the tests
	daemon     proctest.Daemon
}

// Start starts a server in a temporary folder. It ends with Stop, and with the
// process that called Start.
func Start() (_ *Server, err error) {
	s := &Server{}
	if s.bin, err = binaries(); err != nil {
		return nil, err
	}
	if err := s.settle(); err != nil {
		return nil, err
	}
	if err = s.create(); err == nil {
		err = s.begin()
	}
	if err == nil {
		_, err = s.query("postgres", "CREATE ROLE trusted; CREATE ROLE cleartext")
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// binaries returns the folder of the server's programs: that which
// SYNCER_POSTGRES names, else the newest that is found.
func binaries() (string, error) {
	if named := os.Getenv("SYNCER_POSTGRES"); named != "" {
		return named, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return "", errors.New("no PostgreSQL server is installed; install it, such as by test/pgtest/install.sh, or name the folder with its programs in SYNCER_POSTGRES")
	}
	newest := slices.MaxFunc(found, func(a, b string) int {
		return len(a) - len(b) + strings.Compare(a, b)
	})
	return filepath.Dir(newest), nil
}

// settle finds a folder, a user and an address. PostgreSQL refuses to run as
// root.
func (s *Server) settle() (err error) {
	if s.home, err = os.MkdirTemp("", "pgtest"); err != nil {
		return err
	}
	addresses, err := s.daemon.Addresses(1)
	if err != nil {
		return err
	}
	s.Addr = addresses[0]
	s.host, s.port, _ = net.SplitHostPort(s.Addr)
	s.Socket = s.home + ":" + s.port
	s.CA = filepath.Join(s.home, "ca.crt")
	s.as, err = proctest.Nobody(s.home)
	return err
}

// create makes a cluster of databases.
func (s *Server) create() error {
	initdb := s.command("initdb", "--pgdata="+s.data(), "--no-sync", "--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--no-locale")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	certificate, key, authority, err := Certificates(s.host)
	if err != nil {
		return err
	}
	const access = "local all postgres trust\nhost all +trusted 127.0.0.0/8 trust\nhost all +cleartext 127.0.0.0/8 password\nhost all all 127.0.0.0/8 scram-sha-256\n"
	for path, content := range map[string][]byte{
		s.CA: authority, filepath.Join(s.data(), "server.crt"): certificate, filepath.Join(s.data(), "server.key"): key,
		filepath.Join(s.data(), "pg_hba.conf"): []byte(access),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
		if s.as != nil {
			if err := os.Chown(path, int(s.as.Uid), int(s.as.Gid)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.home, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setpgid: true}
	return cmd
}

// begin runs the server, and returns when it takes log-ins.
func (s *Server) begin() error {
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	server := s.command("postgres", "-D", s.data(), "-k", s.home, "-h", s.host, "-p", s.port, "-c", "ssl=on",
		"-c", "fsync=off", "-c", "log_statement=all", "-c", "log_connections=on", "-c", "max_connections=200",
		"-c", "shared_buffers=16MB", "-c", "autovacuum=off", "-c", "jit=off")
	server.Stdout, server.Stderr = log, log
	err = s.daemon.Begin(proctest.Tie(server, "QUIT"), func() error {
		_, err := s.query("postgres", "SELECT 1")
		return err
	})
	if err != nil {
		text, _ := os.ReadFile(s.logPath())
		return fmt.Errorf("PostgreSQL: %w\n%s", err, text)
	}
	return nil
}

func (s *Server) logPath() string { return filepath.Join(s.home, "log") }

// Stop ends the server and removes what it kept.
func (s *Server) Stop() error {
	s.daemon.End()
	return os.RemoveAll(s.home)
}

// Crash ends the server at once; Restart has it back with what was committed.
func (s *Server) Crash() { s.daemon.Crash() }

// Restart starts the server again after Crash.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
}

// Log returns what the server has logged.
func (s *Server) Log(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Query runs SQL as the superuser and returns the rows of the last statement,
// with their columns joined by spaces.
func (s *Server) Query(t testing.TB, database, sql string) []string {
	t.Helper()
	rows, err := s.query(database, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return rows
}

func (s *Server) query(database, sql string) (rows []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	config, err := pgconn.ParseConfig(fmt.Sprintf("host=%s port=%s user=postgres dbname=%s sslmode=disable", s.home, s.port, database))
	if err != nil {
		return nil, err
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 {
		return nil, err
	}
	for _, row := range results[len(results)-1].Rows {
		rows = append(rows, string(bytes.Join(row, []byte(" "))))
	}
	return rows, nil
}
