package logintest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/secretsync/syncer/test/pgtest"
	"github.com/secretsync/syncer/test/proctest"
)

// MariaDB is a server that listens at an address of loopback, with TLS and without, and at
// a socket. It logs every statement. Its user root logs in at the socket without a password.
type MariaDB struct {
	Addr string // host:port, of loopback
	CA   string // file with the certificate that signed its certificate

	home   string
	args   []string
	as     *syscall.Credential // nil: as who runs the tests
	daemon proctest.Daemon
	root   *sql.DB
}

// StartMariaDB starts a server in a temporary folder, with further options. It ends with the
// test, and with the process.
func StartMariaDB(t testing.TB, options ...string) *MariaDB {
	t.Helper()
	s := &MariaDB{}
	t.Cleanup(func() {
		var err error
		if s.root != nil {
			err = s.root.Close()
		}
		s.daemon.End()
		if err := errors.Join(err, os.RemoveAll(s.home)); err != nil {
			t.Error(err)
		}
	})
	err := s.settle(options)
	if err == nil {
		err = s.begin()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// settle finds a folder, a user and an address, and creates the system's tables. MariaDB
// refuses to run as root. A server that starts deletes all temporary tables in its tmpdir,
// so no two may share one.
func (s *MariaDB) settle(options []string) (err error) {
	if s.home, err = os.MkdirTemp("", "mariadb"); err != nil {
		return err
	}
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.MultiStatements = "root", "unix", filepath.Join(s.home, "socket"), true
	config.Logger = &mysql.NopLogger{} // a crash is no news
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	s.root = sql.OpenDB(connector)
	addresses, err := s.daemon.Addresses(1)
	if err != nil {
		return err
	}
	s.Addr, s.CA = addresses[0], filepath.Join(s.home, "ca.crt")
	_, port, _ := net.SplitHostPort(s.Addr)
	certificate, key, authority, err := pgtest.Certificates("127.0.0.1")
	if err != nil {
		return err
	}
	files := map[string][]byte{s.CA: authority, filepath.Join(s.home, "own.crt"): certificate, filepath.Join(s.home, "own.key"): key}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	if s.as, err = proctest.Nobody(append(slices.Collect(maps.Keys(files)), s.home)...); err != nil {
		return err
	}
	s.args = append([]string{
		"--no-defaults", "--datadir=" + s.data(), "--tmpdir=" + s.home, "--socket=" + config.Addr, "--bind-address=127.0.0.1", "--port=" + port, "--skip-name-resolve",
		"--ssl-cert=" + filepath.Join(s.home, "own.crt"), "--ssl-key=" + filepath.Join(s.home, "own.key"), "--general-log", "--general-log-file=" + s.logPath(),
		"--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0", "--debug-no-sync", "--max-connections=200", "--pid-file=" + filepath.Join(s.home, "pid"),
	}, options...)
	create, err := s.command("mariadb-install-db", "--no-defaults", "--datadir="+s.data(), "--tmpdir="+s.home, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve", "--debug-no-sync")
	if err != nil {
		return err
	}
	if out, err := create.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	return nil
}

func (s *MariaDB) data() string    { return filepath.Join(s.home, "data") }
func (s *MariaDB) logPath() string { return filepath.Join(s.home, "log") }

func (s *MariaDB) command(name string, args ...string) (*exec.Cmd, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		if path = filepath.Join("/usr/sbin", name); !exists(path) {
			return nil, fmt.Errorf("no %s is installed; install MariaDB, such as by test/logintest/install.sh", name)
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = s.home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setpgid: true}
	return cmd, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// begin runs the server, and returns when it takes log-ins.
func (s *MariaDB) begin() error {
	server, err := s.command("mariadbd", s.args...)
	if err != nil {
		return err
	}
	var said strings.Builder
	server.Stderr = &said
	if err := s.daemon.Begin(proctest.Tie(server, "KILL"), s.root.Ping); err != nil {
		return fmt.Errorf("MariaDB: %w\n%s", err, said.String())
	}
	return nil
}

// Crash ends the server at once.
func (s *MariaDB) Crash() { s.daemon.Crash() }

// Restart starts the server again after Crash, with what was committed.
func (s *MariaDB) Restart(t testing.TB) {
	t.Helper()
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
}

// Log returns the log-ins and statements that the server has logged.
func (s *MariaDB) Log(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Query runs SQL as root and returns the rows of the last statement, with their columns
// joined by spaces.
func (s *MariaDB) Query(t testing.TB, text string) (all []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), proctest.Patience)
	defer cancel()
	rows, err := s.root.QueryContext(ctx, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	for more := true; more; more = rows.NextResultSet() {
		all = nil
		names, err := rows.Columns()
		for err == nil && rows.Next() {
			row, to := make([]sql.NullString, len(names)), make([]any, len(names))
			for i := range row {
				to[i] = &row[i]
			}
			err = rows.Scan(to...)
			texts := make([]string, len(row))
			for i, column := range row {
				texts[i] = column.String
			}
			all = append(all, strings.Join(texts, " "))
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return all
}
