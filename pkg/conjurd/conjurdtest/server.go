// Package conjurdtest runs a Conjur-compatible server inside a test: on loopback,
// with TLS, counters and fault injection.
//
//	s := conjurdtest.Start(t)
//	s.Policy("- !variable password\n- !host web\n" +
//		"- !permit { role: !host web, privileges: [ read, execute ], resource: !variable password }\n")
//	s.Set("password", "s3cret")
//	// Point a client at s.URL, with s.CA, s.Account, the login "host/web" and
//	// the API key s.HostKey("web").
//
// Another Policy revokes:
//
//	s.Policy("- !deny { role: !host web, privileges: [ execute ], resource: !variable password }\n")
//	s.Policy("- !delete { record: !variable password }\n")
//
// By default the server has conjurd's extensions of the genuine server, such as
// answers per variable; see Strict.
package conjurdtest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd"
)

// Account is the account of every test server.
const Account = "dev"

// Server is a running server. Its methods fail the test on errors. Any goroutine
// that the test waits for may call them.
type Server struct {
	URL      string // https://127.0.0.1:port
	Account  string
	CA       []byte // PEM of the certificate authority that clients must trust
	AdminKey string // API key of the user "admin"
	Conjurd  *conjurd.Server

	t      testing.TB
	faults switchboard
	meter  meter
	jwt    issuer
}

// Option changes the options of a server.
type Option func(*conjurd.Options)

// TokenTTL sets the lifetime of access tokens, which is 8 minutes by default. Token
// times are in whole seconds.
func TokenTTL(d time.Duration) Option {
	return func(o *conjurd.Options) { o.UserTokenTTL, o.HostTokenTTL = d, d }
}

// Strict disables everything that the genuine server lacks.
func Strict() Option { return func(o *conjurd.Options) { o.Strict = true } }

// Clock sets the server's clock.
func Clock(now func() time.Time) Option { return func(o *conjurd.Options) { o.Now = now } }

// With changes any option.
func With(f func(*conjurd.Options)) Option { return f }

// Start runs a server until the test ends. Failed logins are not delayed, unless an
// option sets a limit.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	o := conjurd.Options{Account: Account, MaxFailedLogins: -1, TokenKey: sharedKey()}
	for _, opt := range opts {
		opt(&o)
	}
	s := &Server{Account: o.Account, t: t}
	var err error
	if s.Conjurd, err = conjurd.Open(o); err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { s.check(s.Conjurd.Close()) })
	s.AdminKey, err = s.Conjurd.APIKey(t.Context(), "admin")
	s.check(err)
	s.serve()
	return s
}

// sharedKey is the key of all test servers of a process. Generating one takes
// longer than most tests run.
var sharedKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// serve starts the server on a free port and stops it at the end of the test.
func (s *Server) serve() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	served, err := conjurd.ServeLoopback(s.meter.count(s.faults.wrap(ctx, s.Conjurd.Handler())), s.meter.accepted)
	s.t.Cleanup(func() {
		cancel()
		s.check(served.Close())
	})
	s.check(err)
	s.URL, s.CA = served.URL, served.CA
}

// Client returns a client that trusts the server's CA. The end of the test closes
// its idle connections.
func (s *Server) Client() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.CA)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableCompression: true}
	s.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// Policy loads a text into the root policy, as PATCH does: it adds and changes, and
// applies !delete, !revoke and !deny.
func (s *Server) Policy(text string) []conjurd.Role {
	s.t.Helper()
	roles, err := s.Conjurd.LoadPolicy(context.Background(), conjurd.Update, "root", strings.NewReader(text))
	s.check(err)
	return roles
}

// Set gives a variable a value. id has no account and no kind.
func (s *Server) Set(id, value string) {
	s.t.Helper()
	s.check(s.Conjurd.Set(context.Background(), id, []byte(value)))
}

// HostKey returns the API key of a host by its id, such as "app/web".
func (s *Server) HostKey(id string) string {
	s.t.Helper()
	key, err := s.Conjurd.APIKey(context.Background(), "host/"+id)
	s.check(err)
	return key
}

// Env is the environment of a process that logs in as a host, by its API key.
func (s *Server) Env(host string) map[string]string {
	s.t.Helper()
	return map[string]string{
		"CONJUR_APPLIANCE_URL": s.URL, "CONJUR_ACCOUNT": s.Account, "CONJUR_SSL_CERTIFICATE": string(s.CA),
		"CONJUR_AUTHN_LOGIN": "host/" + host, "CONJUR_AUTHN_API_KEY": s.HostKey(host),
	}
}

func (s *Server) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("test server: %v", err)
	}
}
