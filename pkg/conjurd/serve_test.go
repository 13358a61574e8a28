package conjurd

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// trusting is a client of a server with the CA's certificate.
func trusting(t *testing.T, ca *CA) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca.Cert) {
		t.Fatal("the CA is not PEM")
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func TestServeStopsGracefully(t *testing.T) {
	ca := newCA(t)
	cert, err := ca.Issue()
	if err != nil {
		t.Fatal(err)
	}
	ln := listen(t, "127.0.0.1:0")
	url := "https://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	begun, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- ServeHandler(ctx, ln, &tls.Config{Certificates: []tls.Certificate{cert}}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			<-release
			_, _ = io.WriteString(w, r.Proto)
		}))
	}()
	answer := make(chan string, 1)
	client := trusting(t, ca)
	go func() {
		res, err := client.Get(url)
		if err != nil {
			answer <- err.Error()
			return
		}
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		answer <- string(b)
	}()
	<-begun
	cancel()
	for refused := false; !refused; { // until it has begun to stop
		conn, err := net.Dial("tcp", ln.Addr().String())
		if refused = err != nil; !refused {
			_ = conn.Close()
		}
	}
	select {
	case err := <-done:
		t.Fatalf("it stopped while a request was under way: %v", err)
	default:
	}
	close(release)
	if got := <-answer; got != "HTTP/1.1" {
		t.Errorf("the request under way is answered %q", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}

// A request that takes longer than the grace is told to end, and waited for.
func TestServeEndsWhatOutlivesTheGrace(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	ln := listen(t, "127.0.0.1:0")
	ended := false
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		ended = true // no race: run waits
	})
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if res, err := trusting(t, newCA(t)).Get("http://" + ln.Addr().String()); err == nil {
			_ = res.Body.Close()
		}
	}()
	if err := run(ctx, newHTTPServer(h), ln, 0); err == nil || !ended {
		t.Errorf("ended: %v, error: %v", ended, err)
	}
	<-asked
}

func newCA(t *testing.T) *CA {
	t.Helper()
	ca, err := NewCA()
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func TestServeRefusesPlainHTTPForOthers(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		addr  string
		allow bool
		good  bool
	}{
		{"127.0.0.1:0", false, true}, {"0.0.0.0:0", false, false}, {"0.0.0.0:0", true, true},
	} {
		s := open(t, Options{AllowPlainHTTP: c.allow})
		ln := listen(t, c.addr)
		err := s.Serve(ended, ln, nil)
		if (err == nil) != c.good {
			t.Errorf("%s, allowed %t: %v", c.addr, c.allow, err)
		}
		if err != nil && !strings.Contains(err.Error(), "refusing plain HTTP") {
			t.Errorf("the error is %v", err)
		}
		if _, err := ln.Accept(); err == nil {
			t.Errorf("%s: the listener is still open", c.addr)
		}
	}
}

// What is too long for the genuine server's HTTP parser is answered as by it,
// and the connection is closed.
func TestOverlongRequestLine(t *testing.T) {
	s := open(t, Options{})
	ln := listen(t, "127.0.0.1:0")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln, nil) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /secrets?"+strings.Repeat("x", maxQuery+1)+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(bufio.NewReader(conn))
	if want := "HTTP/1.0 400 Bad Request\r\nContent-Length: 0\r\n\r\n"; err != nil || string(got) != want {
		t.Errorf("the answer is %q, %v", got, err)
	}
	w := send(t, s, request{method: "GET", path: "/secrets?" + strings.Repeat("x", maxQuery+1)})
	if w.Code != 400 || w.Body.Len() > 0 {
		t.Errorf("on a connection that cannot be taken over: status %d", w.Code)
	}
}

func TestCAIssues(t *testing.T) {
	ca, err := NewCA()
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.Cert)
	for _, c := range []struct {
		hosts      []string
		good, evil string
	}{
		{nil, "127.0.0.1", "127.0.0.2"}, {nil, "localhost", "example.org"}, {nil, "::1", "::2"},
		{[]string{"conjur.example.org", "10.0.0.1"}, "conjur.example.org", "localhost"},
		{[]string{"conjur.example.org", "10.0.0.1"}, "10.0.0.1", "127.0.0.1"},
	} {
		cert, err := ca.Issue(c.hosts...)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(cert.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: c.good}); err != nil {
			t.Errorf("for %s: %v", c.good, err)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: c.evil}); err == nil {
			t.Errorf("good for %s too", c.evil)
		}
	}
	if _, err := (&CA{}).Issue(); err == nil {
		t.Error("an empty CA issues")
	}
}
