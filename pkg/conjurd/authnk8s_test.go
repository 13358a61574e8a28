package conjurd

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cluster is one that has some Pods, each by namespace/name.
type cluster struct {
	pods   map[string]*Pod
	fail   error // of Exec
	ran    []string
	script []byte // that came last
}

func (c *cluster) Pod(_ context.Context, namespace, name string) (*Pod, error) {
	return c.pods[namespace+"/"+name], nil
}

func (c *cluster) Exec(_ context.Context, namespace, name, container string, script []byte) error {
	c.ran = append(c.ran, namespace+"/"+name+"/"+container)
	c.script = script
	return c.fail
}

// brought is the certificate in the script that came last.
func (c *cluster) brought(t *testing.T) *x509.Certificate {
	t.Helper()
	begin := bytes.Index(c.script, []byte("-----BEGIN CERTIFICATE"))
	if begin < 0 {
		t.Fatal("no certificate was brought")
	}
	block, _ := pem.Decode(c.script[begin:])
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func csr(t *testing.T, name, uri string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}, URIs: []*url.URL{parsed}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(encodePEM("CERTIFICATE REQUEST", der))
}

const k8sPolicy = `
- !policy
  id: conjur/authn-k8s/prod
  body:
  - !webservice
  - !policy { id: ca, body: [ !variable cert, !variable key ] }
  - !group apps
  - !permit { role: !group apps, privileges: [read, authenticate], resource: !webservice }
- !policy
  id: apps
  body:
  - !host { id: shop, annotations: { authn-k8s/namespace: shop, authn-k8s/service-account: sa, authn-k8s/deployment: web, authn-k8s/authentication-container-name: other, authn-k8s/prod/authentication-container-name: syncer } }
  - !host { id: labelled, annotations: { authn-k8s/namespace-label-selector: "team=blue,stage==prod", kubernetes/authentication-container-name: syncer } }
  - !host { id: red, annotations: { authn-k8s/namespace-label-selector: "team=red" } }
  - !host { id: pod, annotations: { authn-k8s/namespace: shop, authn-k8s/pod: web-1 } }
  - !host { id: set, annotations: { authn-k8s/namespace: shop, authn-k8s/stateful-set: web } }
  - !host { id: two, annotations: { authn-k8s/namespace: shop, authn-k8s/deployment: web, authn-k8s/stateful-set: web } }
  - !host { id: nowhere, annotations: { authn-k8s/service-account: sa } }
  - !host { id: misspelt, annotations: { authn-k8s/namespace: shop, authn-k8s/serviceaccount: sa } }
  - !host { id: gone, annotations: { authn-k8s/namespace: shop, authn-k8s/authentication-container-name: none } }
  - !host shop/*/*
  - !host shop/service_account/sa
  - !host shop/deployment/other
  - !host { id: outside, annotations: { authn-k8s/namespace: shop } }
- !grant
  role: !group conjur/authn-k8s/prod/apps
  members: [ !host apps/shop, !host apps/labelled, !host apps/red, !host apps/pod, !host apps/set, !host apps/two, !host apps/nowhere, !host apps/misspelt, !host apps/gone, !host apps/shop/*/*, !host apps/shop/service_account/sa, !host apps/shop/deployment/other ]
`

// k8sServer is a server with an authenticator for a cluster with one Pod.
func k8sServer(t *testing.T, o Options) (*Server, *cluster) {
	t.Helper()
	c := &cluster{pods: map[string]*Pod{"shop/web-1": {
		NamespaceLabels: map[string]string{"team": "blue", "stage": "prod"}, ServiceAccount: "sa",
		Controllers: []string{"replicaset/web-5d", "deployment/web"}, Containers: []string{"app", "syncer", "authenticator"},
	}}}
	o.Kubernetes = c
	s := open(t, o)
	loadRoot(t, s, k8sPolicy)
	ca := newCA(t)
	set(t, s, "conjur/authn-k8s/prod/ca/cert", string(ca.Cert))
	set(t, s, "conjur/authn-k8s/prod/ca/key", string(ca.Key))
	return s, c
}

const podURI = "spiffe://cluster.local/namespace/shop/podname/web-1"

// inject asks for a certificate for a host, as the Secrets Provider does.
func inject(t *testing.T, s *Server, host, uri string) int {
	t.Helper()
	prefix, name := "host.apps", strings.ReplaceAll(host, "/", ".")
	return send(t, s, request{method: "POST", path: "/authn-k8s/prod/inject_client_cert", body: csr(t, name, uri), header: map[string]string{"Host-Id-Prefix": prefix}}).Code
}

func logIn(t *testing.T, s *Server, host string, cert *x509.Certificate) int {
	t.Helper()
	login := strings.ReplaceAll("host/apps/"+host, "/", "%2F")
	return send(t, s, request{method: "POST", path: "/authn-k8s/prod/dev/" + login + "/authenticate", cert: cert}).Code
}

func TestK8sBringsACertificateToTheRightContainer(t *testing.T) {
	s, c := k8sServer(t, Options{})
	for host, want := range map[string]struct {
		status    int
		container string
	}{
		"shop":                    {202, "syncer"},
		"labelled":                {202, "syncer"},
		"pod":                     {202, "authenticator"},
		"shop/*/*":                {202, "authenticator"},
		"shop/service_account/sa": {202, "authenticator"},
		"shop/deployment/other":   {401, ""},
		"red":                     {401, ""},
		"set":                     {401, ""},
		"two":                     {401, ""},
		"nowhere":                 {401, ""},
		"misspelt":                {401, ""},
		"gone":                    {401, ""},
		"nobody":                  {401, ""},
		"outside":                 {403, ""},
	} {
		c.ran = nil
		status := inject(t, s, host, podURI)
		ran := strings.TrimPrefix(strings.Join(c.ran, " "), "shop/web-1/")
		if status != want.status || ran != want.container {
			t.Errorf("%s: status %d, ran in %q; want %d, %q", host, status, ran, want.status, want.container)
		}
		if status != 202 {
			continue
		}
		if status := logIn(t, s, host, c.brought(t)); status != 200 {
			t.Errorf("%s: log-in with its certificate: status %d", host, status)
		}
	}
	for _, uri := range []string{"spiffe://cluster.local/namespace/shop/podname/none", "spiffe://cluster.local/namespace/other/podname/web-1", "spiffe://cluster.local/web-1", "https://cluster.local/namespace/shop/podname/web-1"} {
		if status := inject(t, s, "shop", uri); status != 401 {
			t.Errorf("for %s: status %d", uri, status)
		}
	}
	c.fail = errors.New("no shell")
	if status := inject(t, s, "shop", podURI); status != 401 {
		t.Errorf("after an exec that failed: status %d", status)
	}
	for _, body := range []string{"", "x", strings.Replace(csr(t, "shop", podURI), "M", "N", 1)} {
		w := send(t, s, request{method: "POST", path: "/authn-k8s/prod/inject_client_cert", body: body, header: map[string]string{"Host-Id-Prefix": "host.apps"}})
		if w.Code != 401 {
			t.Errorf("for the request %.20q: status %d", body, w.Code)
		}
	}
}

func TestK8sLogsInByItsOwnCertificatesOnly(t *testing.T) {
	now := time.Now()
	s, c := k8sServer(t, Options{Now: func() time.Time { return now }})
	if status := inject(t, s, "shop", podURI); status != 202 {
		t.Fatalf("status %d", status)
	}
	cert := c.brought(t)
	if cert.Subject.CommonName != "host.apps.shop" || len(cert.URIs) != 1 || cert.URIs[0].String() != podURI ||
		cert.NotAfter.Sub(now).Round(time.Hour) != workloadLife || len(cert.ExtKeyUsage) > 0 || cert.IsCA {
		t.Errorf("the certificate is for %q, %v, until %v", cert.Subject.CommonName, cert.URIs, cert.NotAfter)
	}
	for name, try := range map[string]struct {
		host string
		cert *x509.Certificate
	}{
		"none":              {"shop", nil},
		"another host":      {"labelled", cert},
		"another authority": {"shop", workload(t, newCA(t), "host.apps.shop", podURI)},
		"no SPIFFE URI":     {"shop", workload(t, newCA(t), "host.apps.shop", "")},
	} {
		if status := logIn(t, s, try.host, try.cert); status != 401 {
			t.Errorf("%s: status %d", name, status)
		}
	}
	now = now.Add(workloadLife + time.Second)
	if status := logIn(t, s, "shop", cert); status != 401 {
		t.Errorf("expired: status %d", status)
	}
	now = now.Add(-time.Hour)
	if status := logIn(t, s, "shop", cert); status != 200 {
		t.Errorf("in its last hour: status %d", status)
	}
	delete(c.pods, "shop/web-1")
	if status := logIn(t, s, "shop", cert); status != 401 {
		t.Errorf("without its Pod: status %d", status)
	}
}

// The script is read by a shell: the file is whole, and appears at once.
func TestInjectionScriptWritesTheFile(t *testing.T) {
	folder := t.TempDir()
	certificate := []byte("-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n")
	script := bytes.ReplaceAll(InjectionScript(certificate), []byte("/etc/conjur/ssl"), []byte(folder))
	sh := exec.Command("sh")
	sh.Stdin = bytes.NewReader(script)
	if out, err := sh.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("sh: %v, %s", err, out)
	}
	got, err := os.ReadFile(filepath.Join(folder, "client.pem"))
	if err != nil || !bytes.Equal(got, certificate) {
		t.Errorf("the file is %q, %v", got, err)
	}
	if left, _ := os.ReadDir(folder); len(left) != 1 {
		t.Errorf("there are %d files", len(left))
	}
}
