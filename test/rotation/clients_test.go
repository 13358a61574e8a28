package rotation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/pipeline"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/test/proctest"
)

// template is what an application reads: the primary, with its id.
const template = `{{range versions "db"}}{{if .Primary}}{"id":"{{.ID}}","username":"{{.Part "username"}}","password":"{{.Part "password"}}"}{{end}}{{end}}`

// client is an application that logs in again and again with the login in its file.
type client struct {
	file   string
	logIn  func(username, password string) error
	using  atomic.Pointer[string] // the id of the version that it logs in with
	logins atomic.Int64
}

// read returns the content of the file.
func (c *client) read() (id, username, password string, err error) {
	var has struct{ ID, Username, Password string }
	text, err := os.ReadFile(c.file)
	if err == nil {
		err = json.Unmarshal(text, &has)
	}
	return has.ID, has.Username, has.Password, err
}

// run logs in until ctx ends, and returns the failures. With turns, it pauses between two
// logins until its file changes or turns sends a time.
func (c *client) run(ctx context.Context, turns <-chan time.Time) (failed []string) {
	for ctx.Err() == nil {
		id, username, password, err := c.read()
		if err != nil {
			return append(failed, err.Error())
		}
		c.using.Store(&id)
		if err := c.logIn(username, password); err != nil {
			failed = append(failed, fmt.Sprintf("login %d, version %s: %v", c.logins.Load(), id, err))
		}
		c.logins.Add(1)
		for paused := turns != nil; paused; {
			select {
			case <-ctx.Done():
				paused = false
			case <-turns:
				paused = false
			case <-time.After(50 * time.Millisecond):
				now, _, _, err := c.read()
				paused = err == nil && now == id
			}
		}
	}
	return failed
}

// logIn logs in as an application does, and uses the database.
func logIn(username, password string) error {
	config, err := pgconn.ParseConfig(fmt.Sprintf("postgres://%s:%s@%s/postgres?sslmode=disable", username, password, postgres.Addr))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), proctest.Patience)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "SELECT current_user").ReadAll()
	_ = conn.Close(ctx)
	return err
}

// newClients returns applications, each with a file that a sidecar keeps fresh. The URL
// reports the versions that they use.
func (s *shop) newClients(n int, interval time.Duration) (clients []*client, ask string) {
	s.t.Helper()
	dir := s.t.TempDir()
	text := "conjur.org/container-mode=\"sidecar\"\nconjur.org/secrets-destination=\"file\"\nconjur.org/secrets-refresh-interval=\"1s\"\n"
	for i := range n {
		name := fmt.Sprintf("client%d", i)
		text += fmt.Sprintf("conjur.org/conjur-secrets.%[1]s=%[2]q\nconjur.org/secret-file-template.%[1]s=%[3]q\nconjur.org/secret-file-format.%[1]s=\"template\"\nconjur.org/secret-file-path.%[1]s=%[4]q\n",
			name, "- db: {credential: "+set+"}", template, "./"+name)
		c := &client{file: filepath.Join(dir, "secrets", name), logIn: s.logins.logIn}
		clients = append(clients, c)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if id := oldest(clients); id != "" {
			_ = json.NewEncoder(w).Encode(consumers.Holding{IDs: []string{id}, Primary: id})
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	s.t.Cleanup(server.Close)
	s.deliver(dir, text, interval, s.Env("app"))
	proctest.Eventually(s.t, "a login in each file", func() bool {
		for _, c := range clients {
			if _, _, _, err := c.read(); err != nil {
				return false
			}
		}
		return true
	})
	return clients, server.URL
}

// oldest returns the id of the oldest version that a client uses; "" until all have logged
// in.
func oldest(clients []*client) (id string) {
	for i, c := range clients {
		using := c.using.Load()
		if using == nil {
			return ""
		}
		if i == 0 || *using < id {
			id = *using
		}
	}
	return id
}

// deliver runs a sidecar that looks for changes at shorter intervals than can be
// configured.
func (s *shop) deliver(dir, annotations string, interval time.Duration, env map[string]string) {
	s.t.Helper()
	for _, name := range []string{"secrets", "templates", "status"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			s.t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "annotations")
	if err := os.WriteFile(file, []byte(annotations), 0o600); err != nil {
		s.t.Fatal(err)
	}
	cfg, warnings, err := config.Load(config.Sources{
		Annotations: config.File{Name: file}, Getenv: func(name string) string { return env[name] },
		SecretsDir: filepath.Join(dir, "secrets"), TemplatesDir: filepath.Join(dir, "templates"), StatusDir: filepath.Join(dir, "status"),
	}.Read())
	if err != nil || len(warnings) > 0 {
		s.t.Fatal(err, warnings)
	}
	cfg.Refresh.Interval = interval
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- pipeline.Run(ctx, cfg, pipeline.Parts{Workers: 4, Grace: 5 * time.Second, Log: zap.NewNop()})
	}()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && ctx.Err() == nil {
			s.t.Error(err)
		}
	})
}

// all runs the clients until stop is called, which returns the failures.
func all(t *testing.T, clients []*client, turns <-chan time.Time) (stop func() []string) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed []string
	for _, c := range clients {
		running.Go(func() {
			said := c.run(ctx, turns)
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, said...)
		})
	}
	stop = sync.OnceValue(func() []string { cancel(); running.Wait(); return failed })
	t.Cleanup(func() { stop() })
	return stop
}

// some returns the first few lines, for a message.
func some(lines []string) string {
	return strconv.Itoa(len(lines)) + ":\n" + strings.Join(lines[:min(len(lines), 5)], "\n")
}
