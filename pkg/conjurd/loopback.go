package conjurd

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

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
