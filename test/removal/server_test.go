package removal

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd"
)

const account = "dev"

// server is conjurd with the abilities of the genuine server only, and a gateway in front of
// it.
type server struct {
	t    testing.TB
	addr string // host:port
	cert atomic.Pointer[tls.Certificate]
	ca   *conjurd.CA

	lost    string // the variable in question
	dataKey []byte
	ahead   atomic.Int64 // of its clock
	now     atomic.Pointer[conjurd.Server]
	script  atomic.Pointer[script]
}

// script may answer a request instead of the server; it returns false if it does not.
type script func(w http.ResponseWriter, r *http.Request, q question) bool

// question describes a request.
type question struct {
	kind kind
	ids  []string // the variables
	lost bool     // the variable in question is among them
	// privilege is the privilege that is checked; "" means a request for the resource itself.
	privilege string
}

type kind int

const (
	other kind = iota
	login
	batch
	single
	check
	whoami
	list
)

func (q question) data() bool { return q.kind == batch || q.kind == single }

// startServer runs a server with the data on a free port, under a name, until
// the test ends.
func startServer(t testing.TB, host string, data []byte) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, addr: ln.Addr().String(), dataKey: make([]byte, 32)}
	path := s.fresh()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s.now.Store(s.open(path))
	if s.ca, err = conjurd.NewCA(); err != nil {
		t.Fatal(err)
	}
	s.present(s.ca, host)
	config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.cert.Load(), nil }}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- conjurd.ServeHandler(ctx, ln, config, s.handler(ctx)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// present makes the server show a certificate that the authority signed.
func (s *server) present(ca *conjurd.CA, host string) {
	s.t.Helper()
	cert, err := ca.Issue(host)
	if err != nil {
		s.t.Fatal(err)
	}
	s.cert.Store(&cert)
}

func (s *server) fresh() string { return filepath.Join(s.t.TempDir(), "conjur.db") }

func (s *server) open(data string) *conjurd.Server {
	s.t.Helper()
	c, err := conjurd.Open(conjurd.Options{
		Account: account, Data: data, DataKey: s.dataKey, Create: true, Strict: true,
		Now: func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// handler ends the contexts of requests with the server, so that a waiting answer does not
// delay the end of a test.
func (s *server) handler(ctx context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reqCtx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		r = r.WithContext(context.WithValue(reqCtx, lostKey{}, s.lost))
		q := ask(r)
		q.lost = slices.Contains(q.ids, s.lost)
		if f := s.script.Load(); f != nil && (*f)(w, r, q) {
			return
		}
		s.now.Load().Handler().ServeHTTP(w, r)
	})
}

// lostKey is the context key of a request that concerns the variable in question.
type lostKey struct{}

func ask(r *http.Request) question {
	path := r.URL.EscapedPath()
	unescape := func(s string) []string {
		id, _ := url.PathUnescape(s)
		return []string{id}
	}
	if id, ok := strings.CutPrefix(path, "/secrets/"+account+"/variable/"); ok {
		return question{kind: single, ids: unescape(id)}
	}
	if id, ok := strings.CutPrefix(path, "/resources/"+account+"/variable/"); ok {
		return question{kind: check, ids: unescape(id), privilege: r.URL.Query().Get("privilege")}
	}
	switch {
	case strings.HasSuffix(path, "/authenticate"):
		return question{kind: login}
	case path == "/whoami":
		return question{kind: whoami}
	case strings.HasPrefix(path, "/resources/"+account):
		return question{kind: list}
	case path == "/secrets":
		ids := strings.Split(r.URL.Query().Get("variable_ids"), ",")
		for i, id := range ids {
			ids[i] = strings.TrimPrefix(id, account+":variable:")
		}
		return question{kind: batch, ids: ids}
	}
	return question{}
}

// says makes the script answer from now on; nil restores the server's own answers.
func (s *server) says(f script) {
	if f == nil {
		s.script.Store(nil)
		return
	}
	s.script.Store(&f)
}

// policy loads a text into a branch.
func (s *server) policy(mode conjurd.LoadMode, branch, text string) {
	s.t.Helper()
	if _, err := s.now.Load().LoadPolicy(context.Background(), mode, branch, strings.NewReader(text)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) set(values map[string]string) {
	s.t.Helper()
	all := map[string][]byte{}
	for id, value := range values {
		all[id] = []byte(value)
	}
	if err := s.now.Load().SetMany(context.Background(), all); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) hostKey(id string) string {
	s.t.Helper()
	key, err := s.now.Load().APIKey(context.Background(), "host/"+id)
	if err != nil {
		s.t.Fatal(err)
	}
	return key
}

// backup returns the path of a copy of all data.
func (s *server) backup() string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "backup.db")
	if err := s.now.Load().Backup(path); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// restore replaces the server's data.
func (s *server) restore(path string) { s.now.Store(s.open(path)) }
