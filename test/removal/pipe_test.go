package removal

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// pipes is a listener without a network, which a bubble of virtual time can
// hold.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept, Close and Addr implement net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// web serves a handler over pipes. It can go away and come back.
type web struct {
	handler http.Handler

	mu    sync.Mutex
	now   *pipes // nil: it is down
	close func()
}

func (s *web) up() {
	p := newPipes()
	ctx, cancel := context.WithCancel(context.Background()) // what waits for a client's end waits no longer
	server := &http.Server{
		Handler: s.handler, ErrorLog: log.New(io.Discard, "", 0), BaseContext: func(net.Listener) context.Context { return ctx },
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(p) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.close = p, func() { cancel(); _ = server.Close(); <-done }
}

func (s *web) down() {
	s.mu.Lock()
	end := s.close
	s.now = nil
	s.mu.Unlock()
	end()
	time.Sleep(2 * time.Millisecond) // of virtual time, for the answers under way
}

func (s *web) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	s.mu.Lock()
	p := s.now
	s.mu.Unlock()
	if p == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: &net.UnixAddr{Name: addr, Net: "unix"}, Err: io.EOF}
	}
	return p.dial(ctx, network, addr)
}
