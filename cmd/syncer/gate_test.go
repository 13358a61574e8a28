package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// gate is what lies between a process and the server: it passes bytes on,
// swallows them, or refuses connections.
type gate struct {
	t            testing.TB
	addr, server string

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	dark     bool
	closed   bool
	wg       sync.WaitGroup
}

// newGate puts a gate before the world's server.
func newGate(w *world) *gate {
	w.Helper()
	g := &gate{t: w.TB, addr: "127.0.0.1:0", server: strings.TrimPrefix(w.Server.URL, "https://"), conns: map[net.Conn]bool{}}
	g.open()
	w.Env["CONJUR_APPLIANCE_URL"] = "https://" + g.addr
	w.Cleanup(func() {
		g.mu.Lock()
		g.closed = true
		g.mu.Unlock()
		g.refuse()
		g.wg.Wait()
	})
	return g
}

// open accepts connections and passes bytes on, also again.
func (g *gate) open() {
	g.t.Helper()
	g.mu.Lock()
	g.dark = false
	listening := g.listener != nil
	g.mu.Unlock()
	g.cut()
	if listening {
		return
	}
	var ln net.Listener
	eventually(g.t, "the gate's port", func() (ok bool) {
		var err error
		ln, err = net.Listen("tcp", g.addr)
		return err == nil
	})
	g.mu.Lock()
	g.listener, g.addr = ln, ln.Addr().String()
	g.mu.Unlock()
	g.wg.Go(func() { g.accept(ln) })
}

// swallow takes what comes and passes nothing on.
func (g *gate) swallow() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dark = true
}

// refuse closes the port, and the connections with it.
func (g *gate) refuse() {
	g.mu.Lock()
	if g.listener != nil {
		_ = g.listener.Close()
		g.listener = nil
	}
	g.mu.Unlock()
	g.cut()
}

// cut breaks the connections that there are.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.conns {
		_ = conn.Close()
	}
}

func (g *gate) accept(ln net.Listener) {
	for {
		client, err := ln.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", g.server)
		if err != nil || !g.keep(client, server) {
			_ = client.Close()
			continue
		}
		g.wg.Go(func() { g.pass(client, server) })
		g.wg.Go(func() { g.pass(server, client) })
	}
}

func (g *gate) keep(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, conn := range conns {
		g.conns[conn] = true
	}
	return !g.closed
}

// pass copies until either end is closed, and then closes both.
func (g *gate) pass(from, to net.Conn) {
	_, _ = io.Copy(gateWriter{g, to}, from)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, conn := range []net.Conn{from, to} {
		_ = conn.Close()
		delete(g.conns, conn)
	}
}

// gateWriter drops what is written while the gate is dark.
type gateWriter struct {
	g  *gate
	to net.Conn
}

func (w gateWriter) Write(b []byte) (int, error) {
	w.g.mu.Lock()
	dark := w.g.dark
	w.g.mu.Unlock()
	if dark {
		return len(b), nil
	}
	return w.to.Write(b)
}

// isData tells requests for values, and isLogin those for an access token.
func isData(r *http.Request) bool  { return strings.HasPrefix(r.URL.Path, "/secrets") }
func isLogin(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/authenticate") }
