package removal

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
)

// web serves a handler over pipes. It can go away and come back.
type web struct {
	handler http.Handler

	mu    sync.Mutex
	now   *conjurtest.Pipes // nil: it is down
	close func()
}

func (s *web) up() {
	p := conjurtest.NewPipes()
	ctx, cancel := context.WithCancel(context.Background()) // answers that wait for the client's end no longer wait
	server := &http.Server{
		Handler: s.handler, ErrorLog: conjurtest.NoLog(), BaseContext: func(net.Listener) context.Context { return ctx },
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(p) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.close = p, func() { cancel(); _ = server.Close(); <-done }
}

// down ends the server. All answers so far have arrived, and no answer under way does.
func (s *web) down() {
	synctest.Wait()
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
	return p.Dial(ctx, network, addr)
}
