package sources_test

import (
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/secretsync/syncer/pkg/kube"
)

// link is a way to the API server that can be cut, while others reach it.
type link struct {
	server  *url.URL
	address string
	wg      sync.WaitGroup

	mu   sync.Mutex
	open []io.Closer // the listener and the connections; none while it is cut
}

func newLink(t *testing.T) *link {
	t.Helper()
	server, err := url.Parse(cluster.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{server: server, address: "127.0.0.1:0"}
	l.mend(t)
	t.Cleanup(func() { l.cut(); l.wg.Wait() })
	return l
}

// client is that of the service account "app" of a namespace, by way of the
// link.
func (l *link) client(t *testing.T, namespace string) *kube.Client {
	t.Helper()
	text, err := os.ReadFile(cluster.KubeconfigFor(t, cluster.Token(t, namespace, "app")))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), l.server.Host, l.address)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := kube.Connect(kube.Config{Kubeconfig: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// cut breaks the connections; new ones are refused.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

func (l *link) mend(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	l.address = listener.Addr().String()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, listener)
	l.wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			l.wg.Go(func() { l.join(conn) })
		}
	})
}

// join hands on what either side sends until one of them closes.
func (l *link) join(from net.Conn) {
	to, err := net.Dial("tcp", l.server.Host)
	if err != nil {
		_ = from.Close()
		return
	}
	l.mu.Lock()
	l.open = append(l.open, from, to)
	l.mu.Unlock()
	both := func() { _ = from.Close(); _ = to.Close() }
	l.wg.Go(func() { defer both(); _, _ = io.Copy(to, from) })
	defer both()
	_, _ = io.Copy(from, to)
}
