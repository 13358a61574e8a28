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
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// gate is a proxy in front of the API server that can hold back what watches
// tell.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed while the gate is open
}

// gated has the processes that are started from now on talk to the API server
// through a gate, which is open.
func (w *world) gated() *gate {
	w.t.Helper()
	g := &gate{opened: make(chan struct{})}
	close(g.opened)
	to, err := url.Parse(plane.URL())
	if err != nil {
		w.t.Fatal(err)
	}
	// The client library tells a token to nobody without TLS; the proxy adds it.
	transport, err := rest.TransportFor(plane.ConfigFor(plane.Token(w.t, w.namespace, "syncer")))
	if err != nil {
		w.t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     transport,
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Query().Get("watch") == "true" {
				r.Body = gatedBody{r.Body, g, r.Request}
			}
			return nil
		},
	})
	w.t.Cleanup(func() {
		g.open()
		server.CloseClientConnections()
		server.Close()
		utilnet.CloseIdleConnectionsFor(transport)
	})
	path := filepath.Join(w.dir, "gated.kubeconfig")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}", server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.env["KUBECONFIG"] = path
	return g
}

// shut holds back all that watches tell from now on.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.opened:
		g.opened = make(chan struct{})
	default: // it is
	}
}

// open lets it pass.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.opened:
	default:
		close(g.opened)
	}
}

func (g *gate) passage() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened
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
