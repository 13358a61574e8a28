package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/health/status"
	"github.com/secretsync/syncer/test/proctest"
)

// TestStatusNamesWhatIsInDoubt: which setting says where the process is, and which one
// names the token.
func TestStatusNamesWhatIsInDoubt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	right, wrong := file("right", "open-sesame\n"), file("wrong", "expired\n")
	server := httptest.NewServer(&status.Handler{TokenFile: right, Look: func() status.Status { return status.Status{At: time.Now(), Lanes: []status.Lane{{}}} }})
	defer server.Close()
	answers := func(kind, text string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, text)
		}))
		t.Cleanup(s.Close)
		return s
	}
	page, other := answers("text/html", "<html>"), answers("application/json", `{"status": "ok"}`)
	gateway := httptest.NewServer(http.RedirectHandler("/login", http.StatusFound))
	defer gateway.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	closed := proctest.FreeAddress(t)
	for _, c := range []struct {
		name string
		env  []string
		args []string
		want string
	}{
		{"a closed port", nil, []string{"--url", "http://" + closed}, "connection refused: no process listens at the address of --url; set server.address and server.status of the process, or from outside its Pod run kubectl port-forward"},
		{"a closed port of the environment", []string{"SERVER_ADDRESS=" + closed}, nil, "at the address of SERVER_ADDRESS;"},
		{"no token", []string{"SERVER_ADDRESS=" + address}, nil, "401 Unauthorized: the process requires a token; name its file with --token-file or SERVER_STATUS_TOKEN_FILE"},
		{"an old token", []string{"SERVER_ADDRESS=" + address}, []string{"--token-file", wrong}, "the token in " + wrong + ", named by --token-file, is not the one in the process's server.statusTokenFile"},
		{"an old token of the environment", []string{"SERVER_ADDRESS=" + address, "SERVER_STATUS_TOKEN_FILE=" + wrong}, []string{"--watch"}, "named by SERVER_STATUS_TOKEN_FILE,"},
		{"no address", nil, []string{"--url", address}, `--url "` + address + `" is not the address of a server; use one such as http://127.0.0.1:8080`},
		{"the wrong scheme", nil, []string{"--url", "https://" + address}, "the process serves plain HTTP at the address of --url; begin it with http://"},
		{"a page of another program", nil, []string{"--url", page.URL}, "the answer is not the status of a Syncer process: another program listens at the address of --url"},
		{"changes of another program", nil, []string{"--url", page.URL, "--watch"}, "the answer is not the status of a Syncer process"},
		{"JSON of another program", nil, []string{"--url", other.URL}, "the answer is not the status of a Syncer process"},
		{"a gateway", nil, []string{"--url", gateway.URL}, gateway.URL + "/status.json: 302 Found"},
		{"a token of two lines", []string{"SERVER_ADDRESS=" + address}, []string{"--token-file", file("lines", "a\nb\n")}, "lines: a token is one line of text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := spawn(t, c.env, append([]string{"status"}, c.args...)...)
			p.Exit(2)
			if !strings.Contains(p.Log(), c.want) || strings.Contains(p.Log(), "expired") || strings.Count(p.Log(), "\n") != 1 {
				t.Errorf("said: %s, want %q", p.Log(), c.want)
			}
		})
	}
	p := spawn(t, []string{"SERVER_ADDRESS=" + address, "SERVER_STATUS_TOKEN_FILE=" + right}, "status")
	p.Exit(0)
}
