package conjurd

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		writeForEver(path)
	}
	goleak.VerifyTestMain(m)
}

// open opens a server until the test ends.
func open(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Account == "" {
		o.Account = "dev"
	}
	if o.TokenKey == nil && o.Data == "" {
		o.TokenKey = sharedKey()
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sharedKey signs the tokens of all servers that need no key of their own: making
// one takes longer than most tests compute.
var sharedKey = sync.OnceValue(newTokenKey)

func newTokenKey() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

func loadRoot(t testing.TB, s *Server, text string) {
	t.Helper()
	if _, err := s.LoadPolicy(context.Background(), Update, "root", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

func set(t testing.TB, s *Server, id, value string) {
	t.Helper()
	if err := s.Set(context.Background(), id, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

// request is one to the handler, without a network.
type request struct {
	method, path, body string
	as                 string // login
	header             map[string]string
	from               string            // address; "" for loopback
	cert               *x509.Certificate // of the client
}

func send(t testing.TB, s *Server, q request) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(q.method, q.path, strings.NewReader(q.body))
	r.RemoteAddr = "127.0.0.1:1"
	if q.from != "" {
		r.RemoteAddr = q.from + ":1"
	}
	if q.as != "" {
		r.Header.Set("Authorization", tokenFor(t, s, q.as))
	}
	for k, v := range q.header {
		r.Header.Set(k, v)
	}
	if q.cert != nil {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{q.cert}}
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// tokenFor returns the header of a fresh token.
func tokenFor(t testing.TB, s *Server, login string) string {
	t.Helper()
	key, err := s.APIKey(context.Background(), login)
	if err != nil {
		t.Fatal(err)
	}
	w := send(t, s, request{method: "POST", path: "/authn/dev/" + strings.ReplaceAll(login, "/", "%2F") + "/authenticate", body: key})
	if w.Code != http.StatusOK {
		t.Fatalf("authenticating %s: status %d", login, w.Code)
	}
	return `Token token="` + base64.StdEncoding.EncodeToString(w.Body.Bytes()) + `"`
}

// decode reads a JSON body.
func decode[T any](t testing.TB, w *httptest.ResponseRecorder) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	return v
}

// appPolicy has two variables; the host may read both and set the first.
const appPolicy = `
- !policy
  id: app
  body:
  - !variable a
  - !variable b
  - !variable unset
  - !variable hidden
  - !variable readonly
  - !host web
  - !permit { role: !host web, privileges: [read, execute], resources: [ !variable a, !variable b, !variable unset ] }
  - !permit { role: !host web, privileges: [update], resources: [ !variable a, !variable b ] }
  - !permit { role: !host web, privileges: [read], resource: !variable readonly }
`
