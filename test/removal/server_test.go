package removal

import (
	"context"
	"crypto/tls"
	"fmt"
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

// server is Conjur, without what the genuine server does not have, and what
// may stand before it.
type server struct {
	t    testing.TB
	addr string // host:port
	cert atomic.Pointer[tls.Certificate]
	ca   *conjurd.CA

	dataKey []byte
	ahead   atomic.Int64 // of its clock
	now     atomic.Pointer[conjurd.Server]
	script  atomic.Pointer[script]
}

// script may answer a request in the server's place; false if it does not.
type script func(w http.ResponseWriter, r *http.Request, q question) bool

// question is what a request is about.
type question struct {
	kind kind
	ids  []string // the variables
}

type kind int

const (
	other kind = iota
	login
	batch
	single
	check
	whoami
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

// handler has the contexts of requests end with the server's, so that an
// answer that waits does not hold up the end of a test.
func (s *server) handler(ctx context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reqCtx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		r = r.WithContext(reqCtx)
		if f := s.script.Load(); f != nil && (*f)(w, r, ask(r)) {
			return
		}
		s.now.Load().Handler().ServeHTTP(w, r)
	})
}

func ask(r *http.Request) question {
	path := r.URL.EscapedPath()
	unescape := func(s string) []string {
		id, _ := url.PathUnescape(s)
		return []string{id}
	}
	if id, ok := strings.CutPrefix(path, "/secrets/"+account+"/variable/"); ok {
		return question{single, unescape(id)}
	}
	if id, ok := strings.CutPrefix(path, "/resources/"+account+"/variable/"); ok {
		return question{check, unescape(id)}
	}
	switch {
	case strings.HasSuffix(path, "/authenticate"):
		return question{kind: login}
	case path == "/whoami":
		return question{kind: whoami}
	case path == "/secrets":
		ids := strings.Split(r.URL.Query().Get("variable_ids"), ",")
		for i, id := range ids {
			ids[i] = strings.TrimPrefix(id, account+":variable:")
		}
		return question{batch, ids}
	}
	return question{}
}

// says makes the script answer from now on; nil: the server answers itself.
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

// backup gives the path of a copy of all data.
func (s *server) backup() string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "backup.db")
	if err := s.now.Load().Backup(path); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// restore has the server go on with other data.
func (s *server) restore(path string) { s.now.Store(s.open(path)) }

// An answer is what stands in for the server's.
type answer = http.HandlerFunc

const (
	html  = "text/html"
	text  = "text/plain"
	jsonT = "application/json; charset=utf-8"
	page  = "<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head><body>403 Forbidden</body></html>\n"
)

// says is an answer with a status and a body.
func says(status int, contentType, body string, header ...string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}
}

func bare(status int) answer { return says(status, html, "") }

// gone is the body by which Conjur says that a variable has no value.
func gone(account, id string) string {
	return fmt.Sprintf(`{"error":{"code":"not_found","message":"CONJ00076E Variable %s:variable:%s is empty or not found."}}`, account, id)
}

// hangUp sends the text as it is and closes the connection.
func hangUp(text string) answer { return leave(text, -1) }

// reset does so with a RST, so that what was sent may not be read any more.
func reset(text string) answer { return leave(text, 0) }

func leave(text string, linger int) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = buf.WriteString(text)
		_ = buf.Flush()
		if plain, ok := conn.(*tls.Conn); ok && linger >= 0 {
			_ = plain.NetConn().(*net.TCPConn).SetLinger(linger)
			_ = plain.NetConn().Close()
			return
		}
		_ = conn.Close()
	}
}

// silent sends what it has, and then nothing for as long as the client waits.
func silent(begin string) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", jsonT)
		if begin != "" {
			w.Header().Set("Content-Length", "400")
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, begin)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

// everywhere answers every request.
func everywhere(a answer) script {
	return func(w http.ResponseWriter, r *http.Request, _ question) bool { a(w, r); return true }
}

// toAll answers questions of one kind.
func toAll(k kind, a answer) script {
	return func(w http.ResponseWriter, r *http.Request, q question) bool {
		if q.kind == k {
			a(w, r)
		}
		return q.kind == k
	}
}

// about answers what is asked of one variable, alone or in a batch.
func about(id string, a answer) script {
	return func(w http.ResponseWriter, r *http.Request, q question) bool {
		mine := q.data() && slices.Contains(q.ids, id)
		if mine {
			a(w, r)
		}
		return mine
	}
}

// both is the first script that answers.
func both(scripts ...script) script {
	return func(w http.ResponseWriter, r *http.Request, q question) bool {
		for _, f := range scripts {
			if f(w, r, q) {
				return true
			}
		}
		return false
	}
}
