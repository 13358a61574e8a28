package health

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/health/status"
)

// pipes is a listener for connections of any peer, in virtual time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// from is a connection of a peer.
type from struct {
	net.Conn
	peer string
}

func (f from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.peer), Port: 1} }

// dial connects from a peer; the server has accepted the connection then.
func (p *pipes) dial(t *testing.T, peer string) net.Conn {
	near, far := net.Pipe()
	p.conns <- from{far, peer}
	synctest.Wait()
	t.Cleanup(func() { near.Close() })
	return near
}

// bubble serves s in virtual time.
func bubble(t *testing.T, s *Server, test func(t *testing.T, p *pipes)) {
	s.Metrics = NewMetrics("").Handler()
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, p) }()
		t.Cleanup(func() {
			stop()
			if err := <-served; err != nil {
				t.Errorf("Serve: %v", err)
			}
		})
		test(t, p)
	})
}

// send writes a request, or a part of one.
func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// answer sends a request and returns the status of the answer.
func answer(t *testing.T, c net.Conn, text string) int {
	t.Helper()
	send(t, c, text)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode
}

// ends waits until the server closes the connection, and returns how long that took.
func ends(t *testing.T, c net.Conn) time.Duration {
	t.Helper()
	begin := time.Now()
	_ = c.SetReadDeadline(begin.Add(time.Hour))
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the server does not end the connection: %v", err)
	}
	return time.Since(begin)
}

// open counts the connections that the server has not closed.
func open(conns []net.Conn) (n int) {
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			n++
		}
		_ = c.SetReadDeadline(time.Time{})
	}
	return n
}

const probeRequest = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"

func TestSlowRequestsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		lasts time.Duration
	}{
		"nothing":              {"", 5 * time.Second},
		"half a header":        {"GET /healthz HTTP/1.1\r\nHost: a\r\n", 5 * time.Second},
		"must not have a body": {"GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n", 0},
		"no rest":              {"POST /status HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n", 0},
		"idle":                 {probeRequest, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, &Server{Process: &process{}}, func(t *testing.T, p *pipes) {
				conn := p.dial(t, "10.0.0.1")
				send(t, conn, c.text)
				if took := ends(t, conn); took != c.lasts {
					t.Errorf("the connection lasts %v", took)
				}
			})
		})
	}
}

// TestBoundsOfTheToken: each token that its file may have fits into a request.
func TestBoundsOfTheToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	bubble(t, &Server{Process: &process{}, Status: &status.Handler{Look: look, TokenFile: file}}, func(t *testing.T, p *pipes) {
		for less := -1; less <= 1; less++ {
			token := strings.Repeat("x", 8<<10+less)
			if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
				t.Fatal(err)
			}
			got := answer(t, p.dial(t, "10.0.0.1"), "GET /status.json HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+token+"\r\n\r\n")
			if (got == http.StatusOK) != (less <= 0) {
				t.Errorf("a token of the bound%+d: status %d", less, got)
			}
		}
	})
}

func TestNoRequestHasABody(t *testing.T) {
	bubble(t, &Server{Process: &process{}, Status: &status.Handler{Look: look}}, func(t *testing.T, p *pipes) {
		for _, request := range []string{"GET /healthz", "GET /readyz", "GET /metrics", "GET /status.json", "POST /status", "GET /none"} {
			for _, body := range []string{"Content-Length: 100000000", "Transfer-Encoding: chunked", "Content-Length: 5\r\nExpect: 100-continue"} {
				c := p.dial(t, "10.0.0.1")
				if got := answer(t, c, request+" HTTP/1.1\r\nHost: a\r\n"+body+"\r\n\r\n"); got != http.StatusRequestEntityTooLarge {
					t.Errorf("%s with %s: status %d", request, body, got)
				}
				if took := ends(t, c); took > time.Second { // the net/http server lets its answer arrive first
					t.Errorf("%s with %s: the server waits %v for the body", request, body, took)
				}
			}
		}
	})
}

func look() status.Status { return status.Status{Mode: "sidecar"} }

func TestOnePeerHasAFewConnections(t *testing.T) {
	bubble(t, &Server{Process: &process{}}, func(t *testing.T, p *pipes) {
		hers := p.dial(t, "10.0.0.2")
		var conns []net.Conn
		for range 4 * mostOfPeer {
			conns = append(conns, p.dial(t, "10.0.0.1"))
		}
		if n := open(conns); n != mostOfPeer {
			t.Errorf("%d connections of one peer are open, want %d", n, mostOfPeer)
		}
		if got := answer(t, conns[len(conns)-1], probeRequest); got != http.StatusOK {
			t.Errorf("the newest connection of the peer: status %d", got)
		}
		if got := answer(t, hers, probeRequest); got != http.StatusOK {
			t.Errorf("a connection of another peer: status %d", got)
		}
	})
}

func TestManyPeersShutNobodyOut(t *testing.T) {
	bubble(t, &Server{Process: &process{}}, func(t *testing.T, p *pipes) {
		hers := p.dial(t, "10.0.0.2")
		var conns []net.Conn
		for i := range 4 * mostOfAll {
			conns = append(conns, p.dial(t, fmt.Sprintf("10.0.1.%d", i%(mostOfAll/2))))
		}
		if n := open(conns); n != mostOfAll-1 {
			t.Errorf("%d connections of many peers are open, want %d", n, mostOfAll-1)
		}
		if got := answer(t, hers, probeRequest); got != http.StatusOK {
			t.Errorf("a connection of a peer with one: status %d", got)
		}
		if got := answer(t, p.dial(t, "10.0.0.3"), probeRequest); got != http.StatusOK {
			t.Errorf("a new peer: status %d", got)
		}
	})
}

// TestAsManyPeersAsPlaces: if each peer has one connection, a new one gets the place of the
// oldest.
func TestAsManyPeersAsPlaces(t *testing.T) {
	bubble(t, &Server{Process: &process{}}, func(t *testing.T, p *pipes) {
		var conns []net.Conn
		for i := range 97 {
			if i == 96 && open(conns) != 96 {
				t.Error("not all connections are open")
			}
			conns = append(conns, p.dial(t, fmt.Sprintf("10.0.0.%d", i)))
		}
		if open(conns[:1]) != 0 || open(conns[1:]) != 96 {
			t.Error("the oldest connection did not give its place")
		}
		if got := answer(t, conns[96], probeRequest); got != http.StatusOK {
			t.Errorf("the newest connection: status %d", got)
		}
	})
}

// A connection that has ended leaves its place to the next.
func TestPlacesAreFreeAgain(t *testing.T) {
	bubble(t, &Server{Process: &process{}}, func(t *testing.T, p *pipes) {
		first := p.dial(t, "10.0.0.1")
		for range 4 * mostOfPeer {
			p.dial(t, "10.0.0.1").Close()
			synctest.Wait()
		}
		if got := answer(t, first, probeRequest); got != http.StatusOK {
			t.Errorf("status %d", got)
		}
	})
}

// TestAStreamOutlivesTheTimeouts that other answers have.
func TestAStreamOutlivesTheTimeouts(t *testing.T) {
	bubble(t, &Server{Status: &status.Handler{Look: look}}, func(t *testing.T, p *pipes) {
		c := p.dial(t, "127.0.0.1")
		send(t, c, "GET /status/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		begin, lines := time.Now(), bufio.NewScanner(c)
		for time.Since(begin) < 10*writeTimeout {
			if !lines.Scan() {
				t.Fatalf("the stream ended after %v: %v", time.Since(begin), lines.Err())
			}
		}
	})
}

func TestAReaderOfTheStreamThatStopsIsLeft(t *testing.T) {
	bubble(t, &Server{Status: &status.Handler{Look: look}}, func(t *testing.T, p *pipes) {
		c := p.dial(t, "127.0.0.1")
		send(t, c, "GET /status/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, err := io.WriteString(c, "x"); err == nil {
			t.Error("the server still has the connection")
		}
	})
}

// slowFolder is measured when it is let.
type slowFolder struct{ let chan struct{} }

func (f slowFolder) Kept() (bytes, limit int64) { <-f.let; return 0, 0 }
func (slowFolder) OnDisk() bool                 { return false }

func TestFewScrapesAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, f := NewMetrics(""), slowFolder{make(chan struct{})}
		defer m.WatchFolder(f)()
		h, codes := m.Handler(), make(chan int, mostScrapes+1)
		for range cap(codes) {
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
				codes <- w.Code
			}()
		}
		synctest.Wait()
		if len(codes) != 1 || <-codes != http.StatusServiceUnavailable {
			t.Errorf("all %d scrapes are under way", cap(codes))
		}
		close(f.let)
	})
}
