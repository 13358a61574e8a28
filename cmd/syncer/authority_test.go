package main

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"sync/atomic"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd"
)

// authority serves the world's server under certificates that can be changed.
type authority struct {
	w    *world
	gate *gate
	cert atomic.Pointer[tls.Certificate]
}

// newAuthority serves under a first CA, which the world's CA file names.
func newAuthority(w *world) *authority {
	w.t.Helper()
	a := &authority{w: w}
	w.trust(a.reissue())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.cert.Load(), nil }}
	go func() { served <- conjurd.ServeHandler(ctx, ln, config, w.server.Conjurd.Handler()) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			w.t.Error(err)
		}
	})
	a.gate = newGateTo(w, ln.Addr().String())
	return a
}

// reissue has the server use a certificate by a new CA, and returns the CA's.
func (a *authority) reissue() (ca []byte) {
	a.w.t.Helper()
	authority, err := conjurd.NewCA()
	if err != nil {
		a.w.t.Fatal(err)
	}
	cert, err := authority.Issue()
	if err != nil {
		a.w.t.Fatal(err)
	}
	a.cert.Store(&cert)
	return authority.Cert
}

// trust makes the CA file hold a certificate, replaced at once.
func (w *world) trust(ca []byte) {
	w.t.Helper()
	delete(w.env, "CONJUR_SSL_CERTIFICATE")
	w.env["CONJUR_CERT_FILE"] = w.path("ca.pem")
	w.write(w.path("ca.pem.new"), string(ca))
	if err := os.Rename(w.path("ca.pem.new"), w.path("ca.pem")); err != nil {
		w.t.Fatal(err)
	}
}

func TestReplacedCAFileIsUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := newAuthority(w)
	w.group("db", "json", "db/password")
	p := w.start()
	w.awaitProvided()
	w.await("db.json", w.renew("db/password"))

	// The server is first, as it often is: it cannot be trusted for a while.
	before := w.look()
	ca := a.reissue()
	a.gate.cut()
	eventually(t, "a word about the certificate", func() bool { return len(p.Lines("Failing", "certificate")) > 0 })
	w.beat()
	w.untouched(before)
	w.trust(ca)
	w.await("db.json", w.renew("db/password"))

	// A file that holds no certificate changes nothing.
	w.trust([]byte("no certificate"))
	a.gate.cut()
	w.await("db.json", w.renew("db/password"))
	p.Stop()
}

func TestUntrustedServerGetsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := newAuthority(w)
	a.reissue() // the file still holds the first CA
	w.oneShot("init", 1)
	w.group("db", "json", "db/password")
	p := w.start()
	p.Exit(1)
	if len(p.Lines("certificate")) == 0 {
		t.Error("the log does not blame the certificate")
	}
	if w.exists("secrets", "db.json") {
		t.Error("a file from a server that cannot be trusted")
	}
}
