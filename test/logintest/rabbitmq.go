package logintest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/test/pgtest"
	"github.com/secretsync/syncer/test/proctest"
)

// RabbitMQ is a server that listens at addresses of loopback, with TLS and without. Its
// administrator is the user "admin", whose password is "admin".
type RabbitMQ struct {
	Addr, TLSAddr string // host:port of AMQP
	API, PlainAPI string // URLs of the management API
	CA            string // file with the certificate that signed its certificate

	home, installed, epmd, nodes string // the last two are ports
	daemon                       proctest.Daemon
}

// StartRabbitMQ starts a server in a temporary folder, with further lines of its
// configuration. It ends with the test, and with the process.
func StartRabbitMQ(t testing.TB, lines ...string) *RabbitMQ {
	t.Helper()
	s := &RabbitMQ{}
	t.Cleanup(func() {
		s.daemon.End()
		if err := os.RemoveAll(s.home); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(s.find(), s.settle(lines)); err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
	return s
}

// find finds the folder that install.sh has filled, or that SYNCER_RABBITMQ names.
func (s *RabbitMQ) find() error {
	folder := os.Getenv("SYNCER_RABBITMQ")
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		folder = filepath.Join(cache, "syncer-rabbitmq")
	}
	if found, err := filepath.Glob(filepath.Join(folder, "usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server")); err != nil || len(found) == 0 {
		return errors.Join(err, errors.New("no RabbitMQ server is there; run test/logintest/install.sh, or name the folder that has its usr/lib/rabbitmq and usr/lib/erlang in SYNCER_RABBITMQ"))
	}
	s.installed = folder
	return nil
}

// settle finds addresses, and writes the configuration.
func (s *RabbitMQ) settle(lines []string) (err error) {
	if s.home, err = os.MkdirTemp("", "rabbitmq"); err != nil {
		return err
	}
	addresses, err := s.daemon.Addresses(6)
	if err != nil {
		return err
	}
	var ports [6]string
	for i, address := range addresses {
		_, ports[i], _ = net.SplitHostPort(address)
	}
	s.Addr, s.TLSAddr, s.PlainAPI, s.API = addresses[0], addresses[1], "http://"+addresses[2], "https://"+addresses[3]
	s.epmd, s.nodes, s.CA = ports[4], ports[5], filepath.Join(s.home, "ca.crt")
	certificate, key, authority, err := pgtest.Certificates("127.0.0.1")
	if err != nil {
		return err
	}
	config := append([]string{
		"listeners.tcp.1 = " + s.Addr, "listeners.ssl.1 = " + s.TLSAddr,
		"management.tcp.ip = 127.0.0.1", "management.tcp.port = " + ports[2], "management.ssl.ip = 127.0.0.1", "management.ssl.port = " + ports[3],
		"default_user = admin", "default_pass = admin", "log.console = true", "log.file = false",
	}, lines...)
	for _, of := range []string{"ssl_options.", "management.ssl."} {
		config = append(config, of+"cacertfile = "+s.CA, of+"certfile = "+filepath.Join(s.home, "own.crt"), of+"keyfile = "+filepath.Join(s.home, "own.key"))
	}
	for path, content := range map[string][]byte{
		"ca.crt": authority, "own.crt": certificate, "own.key": key,
		"rabbitmq.conf": []byte(strings.Join(config, "\n") + "\n"), "plugins": []byte("[rabbitmq_management,rabbitmq_auth_backend_http].\n"),
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(s.home, path), content, 0o600))
	}
	return err
}

// begin runs the server with a separate epmd, and returns when it takes log-ins. Both end
// with the shell's standard input.
func (s *RabbitMQ) begin() error {
	log, err := os.OpenFile(filepath.Join(s.home, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.shell(`epmd -port $ERL_EPMD_PORT -address 127.0.0.1 & exec 3<&0; { read -r _ <&3; kill -KILL 0; } & rabbitmq-server -noinput; kill -KILL 0`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = log, log
	err = s.daemon.Begin(cmd, func() error {
		_, err := s.call(http.MethodGet, "/whoami", nil)
		conn, refused := net.Dial("tcp", s.TLSAddr)
		if refused == nil {
			_ = conn.Close()
		}
		return errors.Join(err, refused)
	})
	if err != nil {
		return fmt.Errorf("RabbitMQ: %w\n%s", err, s.log())
	}
	return nil
}

// shell returns a command that finds the programs of RabbitMQ, and this server.
func (s *RabbitMQ) shell(text string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", `PATH=$(echo "$0"/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin):$PATH; `+text, s.installed)
	cmd.Dir = s.home
	cmd.Env = []string{
		"PATH=" + filepath.Join(s.installed, "usr/lib/erlang/bin") + ":" + os.Getenv("PATH"), "HOME=" + s.home, "LC_ALL=C.UTF-8", "TZ=UTC",
		"ERL_EPMD_PORT=" + s.epmd, "ERL_EPMD_ADDRESS=127.0.0.1", "RABBITMQ_NODENAME=rabbit@localhost", "RABBITMQ_DIST_PORT=" + s.nodes,
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(s.home, "rabbitmq"), "RABBITMQ_CONF_ENV_FILE=" + filepath.Join(s.home, "none"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(s.home, "plugins"), "RABBITMQ_MNESIA_BASE=" + filepath.Join(s.home, "data"), "RABBITMQ_LOG_BASE=" + s.home,
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1} +S 2", "RABBITMQ_ALLOW_INPUT=true",
	}
	return cmd
}

// Run runs commands of a shell, such as rabbitmqctl.
func (s *RabbitMQ) Run(t testing.TB, commands string) {
	t.Helper()
	if said, err := s.shell("set -e; " + commands).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", commands, err, said)
	}
}

// Log returns what the server has logged.
func (s *RabbitMQ) Log(t testing.TB) string {
	t.Helper()
	return s.log()
}

func (s *RabbitMQ) log() string {
	text, _ := os.ReadFile(filepath.Join(s.home, "log"))
	return string(text)
}

// Crash ends the server at once.
func (s *RabbitMQ) Crash() { s.daemon.Crash() }

// Restart starts the server again after Crash, with what it has stored.
func (s *RabbitMQ) Restart(t testing.TB) {
	t.Helper()
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
}

// Call calls the management API as the administrator, and returns the answer. A body that
// is not empty is JSON. The path is below "/api".
func (s *RabbitMQ) Call(t testing.TB, method, path, body string) string {
	t.Helper()
	answer, err := s.call(method, path, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// User creates or changes a user with a password, which may use the virtual host "/".
func (s *RabbitMQ) User(t testing.TB, name, password, tags string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"password": password, "tags": tags})
	if err != nil {
		t.Fatal(err)
	}
	s.Call(t, http.MethodPut, "/users/"+name, string(body))
	s.Call(t, http.MethodPut, "/permissions/%2F/"+name, `{"configure":".*","write":".*","read":".*"}`)
}

func (s *RabbitMQ) call(method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequest(method, s.PlainAPI+"/api"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth("admin", "admin")
	req.Header.Set("Content-Type", "application/json") // user-limits require it
	req.Close = true                                   // so that no goroutine outlives a test
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode > 299 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	return answer, err
}
