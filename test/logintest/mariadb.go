package logintest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/secretsync/syncer/test/pgtest"
)

// MariaDB is a server that listens at an address of loopback, with TLS and without, and at
// a socket. It logs every statement. Its user root logs in at the socket without a password.
type MariaDB struct {
	Addr string // host:port, of loopback
	CA   string // file with the certificate that its own one is signed by

	home string
	args []string
	as   *syscall.Credential // nil: as who runs the tests
	cmd  *exec.Cmd
	hold io.Closer // its standard input, with which the server ends
	root *sql.DB
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
		s.Crash()
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.Addr, s.CA = l.Addr().String(), filepath.Join(s.home, "ca.crt")
	_, port, _ := net.SplitHostPort(s.Addr)
	certificate, key, authority, err := pgtest.Certificates("127.0.0.1")
	if err := errors.Join(err, l.Close()); err != nil {
		return err
	}
	files := map[string][]byte{s.CA: authority, filepath.Join(s.home, "own.crt"): certificate, filepath.Join(s.home, "own.key"): key}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	if os.Geteuid() == 0 {
		nobody, err := user.Lookup("nobody")
		if err != nil {
			return err
		}
		uid, err1 := strconv.Atoi(nobody.Uid)
		gid, err2 := strconv.Atoi(nobody.Gid)
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		err = errors.Join(err1, err2, os.Chown(s.home, uid, gid))
		for path := range files {
			err = errors.Join(err, os.Chown(path, uid, gid))
		}
		if err != nil {
			return err
		}
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

// begin runs the server, and returns when it takes log-ins. A shell ends it when its own
// standard input ends, be it that this process is killed.
func (s *MariaDB) begin() error {
	server, err := s.command("mariadbd", s.args...)
	if err != nil {
		return err
	}
	if s.cmd, err = s.command("sh", "-c", `"$@" & read -r _; kill -KILL $!; wait $!`, "sh"); err != nil {
		return err
	}
	s.cmd.Args = append(s.cmd.Args, server.Path)
	s.cmd.Args = append(s.cmd.Args, server.Args[1:]...)
	var said strings.Builder
	s.cmd.Stderr = &said
	if s.hold, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := s.root.Ping()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			s.Crash()
			return fmt.Errorf("MariaDB does not start: %w\n%s", err, said.String())
		}
	}
}

// Crash ends the server at once.
func (s *MariaDB) Crash() {
	if s.cmd == nil {
		return
	}
	_ = s.hold.Close()
	insist := time.AfterFunc(patience, func() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) })
	defer insist.Stop()
	_ = s.cmd.Wait() // by a signal
	s.cmd = nil
}

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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
