package kubetest

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A client that a test has dropped leaves a connection behind. Stop ends it where
// the control plane goes on.
func TestConnectionsEndAtASharedControlPlane(t *testing.T) {
	ended := make(chan struct{}, 1)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			ended <- struct{}{}
		}
	}
	server.StartTLS()
	defer server.Close()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server.URL, CertificateAuthorityData: ca, TLSServerName: "example.com"}}, // a pool of its own
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c"}}, CurrentContext: "c",
	}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		t.Fatal(err)
	}
	cp, err := connect(nil, path)
	if err != nil {
		t.Fatal(err)
	}
	func() {
		client, err := corev1client.NewForConfig(cp.ConfigFor("token"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Namespaces().Get(t.Context(), "x", metav1.GetOptions{}); err == nil {
			t.Fatal("the server has a namespace")
		}
	}()
	for range 3 { // in which client-go's weak reference is cleared
		runtime.GC()
	}
	if err := cp.Stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the connection is still open")
	}
}
