package conjurd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Timeouts of a server. The genuine server keeps an idle connection for 80 s.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 60 * time.Second
	idleTimeout   = 80 * time.Second
	drainTimeout  = 10 * time.Second
)

// Serve answers requests that arrive on ln until ctx ends. It then waits at most 10
// s for requests in progress. When Serve returns, everything that it started has
// stopped and ln is closed. The error is nil if ctx ended and nothing failed. A nil
// config selects plain HTTP. Serve refuses plain HTTP beyond loopback unless
// Options.AllowPlainHTTP is set.
func (s *Server) Serve(ctx context.Context, ln net.Listener, config *tls.Config) error {
	if config == nil && !s.opt.AllowPlainHTTP && !isLoopback(ln.Addr()) {
		return errors.Join(
			fmt.Errorf("refusing plain HTTP on %s, where others can read the secrets: give a certificate, or allow plain HTTP", ln.Addr()),
			ln.Close())
	}
	return ServeHandler(ctx, ln, config, s.Handler())
}

// ServeHandler is Serve for a handler that wraps a server's Handler. It permits
// plain HTTP on any address.
func ServeHandler(ctx context.Context, ln net.Listener, config *tls.Config, h http.Handler) error {
	if config != nil {
		ln = tls.NewListener(ln, http1Only(config))
	}
	return run(ctx, newHTTPServer(h), ln, drainTimeout)
}

func newHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      bodyTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0), // clients cause handshake errors
	}
}

// http1Only returns config without HTTP/2, which the genuine server does not
// support. It also requests client certificates.
func http1Only(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"}
	if config.ClientAuth == tls.NoClientCert {
		config.ClientAuth = tls.RequestClientCert // for authenticators that need one
	}
	if config.MinVersion == 0 {
		config.MinVersion = tls.VersionTLS12
	}
	return config
}

// run serves until ctx ends and waits for everything that it started. After grace,
// it cancels the contexts of unfinished requests.
func run(ctx context.Context, srv *http.Server, ln net.Listener, grace time.Duration) error {
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	srv.BaseContext = func(net.Listener) context.Context { return base }
	var conns sync.WaitGroup
	srv.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			conns.Done()
		}
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	select {
	case err := <-done:
		err = errors.Join(err, srv.Close())
		cut()
		conns.Wait()
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(base, grace)
	defer cancel()
	err := srv.Shutdown(drain)
	if err != nil {
		cut()
		err = errors.Join(fmt.Errorf("requests under way were cut off: %w", err), srv.Close())
	}
	if serveErr := <-done; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	conns.Wait()
	return err
}

func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback() // a Unix socket or a pipe is equally safe
}

// Loopback is a server on a free port of 127.0.0.1 with a certificate from a new
// authority. It is for demonstrations, measurements and tests.
type Loopback struct {
	URL string // https://127.0.0.1:port
	CA  []byte // PEM that clients must trust

	stop context.CancelFunc
	done chan error
}

// ServeLoopback serves h until Close. It calls accepted for each connection, unless
// nil.
func ServeLoopback(h http.Handler, accepted func()) (*Loopback, error) {
	ca, err := NewCA()
	if err != nil {
		return nil, err
	}
	cert, err := ca.Issue()
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Loopback{URL: "https://" + ln.Addr().String(), CA: ca.Cert, stop: stop, done: make(chan error, 1)}
	if accepted != nil {
		ln = &heardListener{ln, accepted}
	}
	go func() { l.done <- ServeHandler(ctx, ln, &tls.Config{Certificates: []tls.Certificate{cert}}, h) }()
	return l, nil
}

// Close stops the server, as Serve does when its context ends. Call it once. On nil
// it does nothing.
func (l *Loopback) Close() error {
	if l == nil {
		return nil
	}
	l.stop()
	return <-l.done
}

// heardListener calls accepted for each connection.
type heardListener struct {
	net.Listener
	accepted func()
}

func (l *heardListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted()
	}
	return conn, err
}
