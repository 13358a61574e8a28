package cluster

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// gate is a proxy in front of the API server. It can hold back watch events, and the answers
// to writes of Secrets.
type gate struct {
	valve
	writes   valve
	withheld atomic.Int64 // answers to writes that had to wait
}

// valve holds back data while it is shut.
type valve struct {
	mu     sync.Mutex
	opened chan struct{} // closed while the valve is open
}

func newValve() valve {
	opened := make(chan struct{})
	close(opened)
	return valve{opened: opened}
}

// gated makes all later processes use an open gate to the API server.
func (w *world) gated() *gate {
	w.Helper()
	g := &gate{valve: newValve(), writes: newValve()}
	w.Cleanup(w.through(func(proxy *httputil.ReverseProxy) http.Handler {
		proxy.ModifyResponse = func(r *http.Response) error {
			switch {
			case r.Request.URL.Query().Get("watch") == "true":
				r.Body = gatedBody{r.Body, g, r.Request}
			case r.Request.Method == http.MethodPatch && strings.Contains(r.Request.URL.Path, "/secrets/"):
				g.hold(r.Request)
			}
			return nil
		}
		return proxy
	}))
	w.Cleanup(func() {
		g.open()
		g.writes.open()
	})
	return g
}

// through makes all later processes use a proxy of the API server that handler changes,
// until it is closed.
func (w *world) through(handler func(*httputil.ReverseProxy) http.Handler) (closing func()) {
	w.Helper()
	to, err := url.Parse(plane.URL())
	if err != nil {
		w.Fatal(err)
	}
	// client-go sends no token without TLS, so the proxy adds the token.
	transport, err := rest.TransportFor(plane.ConfigFor(plane.Token(w, w.namespace, "syncer")))
	if err != nil {
		w.Fatal(err)
	}
	server := httptest.NewServer(handler(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     transport,
		FlushInterval: -1,
	}))
	path := filepath.Join(w.dir, "gated.kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}", server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	w.Env["KUBECONFIG"] = path
	return func() {
		server.CloseClientConnections()
		server.Close()
		utilnet.CloseIdleConnectionsFor(transport)
	}
}

// hold delays the answer to a write.
func (g *gate) hold(r *http.Request) {
	passage := g.writes.passage()
	select {
	case <-passage:
		return
	default:
		g.withheld.Add(1)
	}
	select {
	case <-passage:
	case <-r.Context().Done():
	}
}

// shut holds back all from now on.
func (v *valve) shut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.opened:
		v.opened = make(chan struct{})
	default: // it is
	}
}

// open lets it pass.
func (v *valve) open() {
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case <-v.opened:
	default:
		close(v.opened)
	}
}

func (v *valve) passage() chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.opened
}

// gatedBody is the body of a watch.
type gatedBody struct {
	io.ReadCloser
	gate    *gate
	request *http.Request
}

func (b gatedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	select {
	case <-b.gate.passage():
	case <-b.request.Context().Done():
	}
	return n, err
}
