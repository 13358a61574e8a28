package conjurtest

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/secret"
)

// Start serves the Double over TLS and returns a client configuration.
func (d *Double) Start(t testing.TB) conjur.Config {
	t.Helper()
	s := httptest.NewUnstartedServer(d)
	s.Config.ErrorLog = NoLog()
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			d.With(func(d *Double) { d.Conns++ })
		}
	}
	s.Config.ConnContext = inConn
	s.StartTLS()
	t.Cleanup(s.Close)
	return configTo(s.URL, Certificate(s))
}

// Certificate returns a server's certificate as PEM text.
func Certificate(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// Pipe serves the Double over pipes, for tests with virtual time, and returns a
// client configuration. The server stops at the end of the test.
func (d *Double) Pipe(t testing.TB) conjur.Config {
	config, stop := d.PipeTLS(nil)
	t.Cleanup(stop)
	config.ApplianceURL = "http://conjur.test"
	return config
}

// PipeTLS does the same until stop is called. If config is not nil, it uses TLS.
func (d *Double) PipeTLS(config *tls.Config) (client conjur.Config, stop func()) {
	l := NewPipes()
	s := &http.Server{Handler: d, ErrorLog: NoLog(), ConnContext: inConn}
	var listener net.Listener = l
	if config != nil {
		listener = tls.NewListener(l, config)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(listener) }()
	client = configTo("https://conjur.test", "")
	client.Dial = l.Dial
	return client, func() { _ = s.Close(); <-done }
}

func configTo(url, ca string) conjur.Config {
	return conjur.Config{ApplianceURL: url, Account: Account, CA: ca, Authenticator: Key{}, RateLimit: 1e6}
}

// Key authenticates as the Double's client.
type Key struct{}

// Credential implements conjur.Authenticator.
func (Key) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	return conjur.Credential{Login: Login, ContentType: "text/plain", Body: secret.New([]byte(APIKey))}, nil
}

// NoLog is for servers whose clients misbehave on purpose.
func NoLog() *log.Logger { return log.New(io.Discard, "", 0) }

// connKey is the context key for the connection of a request.
type connKey struct{}

func inConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// ConnOf returns the connection of a request.
func ConnOf(r *http.Request) net.Conn {
	c, _ := r.Context().Value(connKey{}).(net.Conn)
	return c
}

// abrupt is an end of a pipe on which TLS does not send its closing alert. The
// alert would block until somebody reads, while the server holds its lock.
type abrupt struct{ net.Conn }

// SetWriteDeadline makes later writes fail, unless t is zero. Only the closing
// alert sets a deadline.
func (a abrupt) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() {
		t = time.Now()
	}
	return a.Conn.SetWriteDeadline(t)
}

// Pipes is a listener without a network, for use with virtual time.
type Pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipes returns an open listener.
func NewPipes() *Pipes { return &Pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Dial connects to the listener.
func (p *Pipes) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- abrupt{far}:
		return abrupt{near}, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept returns the server's end of the next connection.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *Pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *Pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// Names returns n ids.
func Names(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("app/v%04d", i)
	}
	return ids
}

// Filled returns a Double with n variables that have values, and their ids.
func Filled(n int) (*Double, []string) {
	d, ids := New(), Names(n)
	d.Fill(ids)
	return d, ids
}

// Fill gives variables values.
func (d *Double) Fill(ids []string) {
	for _, id := range ids {
		d.Set(id, "value of "+id)
	}
}

// WantAsked checks the number of requests of each kind since the last Log.
func (d *Double) WantAsked(t testing.TB, want map[conjur.Kind]int) {
	t.Helper()
	got := map[conjur.Kind]int{}
	for _, a := range d.Log() {
		got[a.Kind]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("requests %v, want %v", got, want)
	}
}

// Contains reports whether a batch requests a variable.
func Contains(r *http.Request, id string) bool {
	return slices.Contains(idsOf(r), id)
}
