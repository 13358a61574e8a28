package authn_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjur/authn/inject"
)

// cluster is the side of authn-k8s that brings certificates into a container.
type cluster struct {
	*fake
	path    string // where to
	life    time.Duration
	delay   time.Duration // before it is there
	issued  []*x509.Certificate
	revoked bool // certificates from before are refused
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{fake: newFake(t), path: filepath.Join(t.TempDir(), "client.pem"), life: 3 * 24 * time.Hour}
	c.inject = func(r request) int {
		block, _ := pem.Decode([]byte(r.body))
		csr, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil || csr.CheckSignature() != nil {
			t.Errorf("no request for a certificate: %v", err)
			return http.StatusUnauthorized
		}
		pair := c.authority.issue(t, csr.Subject.CommonName, csr, c.life)
		issued, _ := x509.ParseCertificate(pair.Certificate[0])
		c.set(func(*fake) { c.issued, c.revoked = append(c.issued, issued), false })
		time.AfterFunc(c.delay, func() { _ = os.WriteFile(c.path, []byte(encode("CERTIFICATE", issued.Raw)), 0o644) })
		return http.StatusAccepted
	}
	c.admit = func(r request) int {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.revoked || r.certificate == nil || len(c.issued) == 0 || !r.certificate.Equal(c.issued[len(c.issued)-1]) {
			return http.StatusUnauthorized
		}
		return http.StatusOK
	}
	return c
}

func (c *cluster) authenticator(login string) *authn.K8s {
	return &authn.K8s{
		URL: "https://conjur.test/authn-k8s/prod", Login: login, Namespace: "shop", Pod: "web-0",
		Inbox: inject.NewInbox(c.path), Wait: 10 * time.Second,
	}
}

func TestK8s(t *testing.T) {
	const escaped = "/authn-k8s/prod/dev/host%2Fconjur%2Fauthn-k8s%2Fprod%2Fapps%2Fshop%2F%2A%2F%2A/authenticate"
	for login, want := range map[string]struct{ name, prefix, path string }{
		"host/conjur/authn-k8s/prod/apps/shop/*/*": {"shop.*.*", "host.conjur.authn-k8s.prod.apps", escaped},
		"host/shop/deployment/web":                 {"shop.deployment.web", "host", "/authn-k8s/prod/dev/host%2Fshop%2Fdeployment%2Fweb/authenticate"},
		"host/apps/web":                            {"web", "host.apps", "/authn-k8s/prod/dev/host%2Fapps%2Fweb/authenticate"},
		"host/web":                                 {"web", "host", "/authn-k8s/prod/dev/host%2Fweb/authenticate"},
	} {
		c := newCluster(t)
		wantFound(t, c.client(c.authenticator(login)))
		got := c.log()
		if len(got) != 2 || got[0].path != "/authn-k8s/prod/inject_client_cert" || got[0].contentType != "text/plain" || got[0].certificate != nil ||
			got[0].prefix != want.prefix || strings.ReplaceAll(got[1].path, "*", "%2A") != want.path || got[1].body != "" || got[1].length != 0 {
			t.Errorf("%s: asked %+v", login, got)
		}
		x := c.issued[0]
		if x.Subject.CommonName != want.name || len(x.URIs) != 1 || x.URIs[0].String() != "spiffe://cluster.local/namespace/shop/podname/web-0" {
			t.Errorf("%s: a certificate for %q, %v", login, x.Subject.CommonName, x.URIs)
		}
		if entries, _ := os.ReadDir(filepath.Dir(c.path)); len(entries) > 0 {
			t.Errorf("left behind: %v", entries)
		}
	}
}

// The certificate serves until two thirds of its life are over, and longer
// when it cannot be renewed then.
func TestK8sRenewsAtTwoThirds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.authority.ahead = -10 * time.Minute // which does not matter
		client := c.client(c.authenticator("host/web"))
		wantFound(t, client)
		time.Sleep(2*24*time.Hour - time.Minute)
		wantFound(t, client)
		if got := paths(c.log()); strings.Count(got, "inject_client_cert") != 1 {
			t.Errorf("before the time: %s", got)
		}
		renew := c.inject
		c.set(func(f *fake) { f.inject = func(request) int { return http.StatusInternalServerError } })
		time.Sleep(2 * time.Minute)
		for range 10 { // the issuer is away: the old one serves, and few ask
			wantFound(t, client)
			time.Sleep(time.Minute)
		}
		if got := paths(c.log()); strings.Count(got, "inject_client_cert") != 2 {
			t.Errorf("while the issuer was away: %s", got)
		}
		c.set(func(f *fake) { f.inject = renew })
		time.Sleep(5 * time.Minute)
		wantFound(t, client)
		if len(c.issued) != 2 {
			t.Errorf("%d certificates, want 2", len(c.issued))
		}
		time.Sleep(3 * 24 * time.Hour)
		c.set(func(f *fake) { f.inject = func(request) int { return http.StatusInternalServerError } })
		wantUnknown(t, client, "requesting a client certificate from Conjur", "answered 500")
		c.set(func(f *fake) { f.inject = renew })
		time.Sleep(time.Minute) // failures are followed by pauses
		wantFound(t, client)
		c.end(client)
	})
}

// A refused certificate is dropped, and one new login made at once.
func TestK8sRefused(t *testing.T) {
	c := newCluster(t)
	client := c.client(c.authenticator("host/web"))
	wantFound(t, client)
	c.set(func(*fake) { c.revoked = true })
	c.log()
	wantFound(t, client)
	const in, out = "/authn-k8s/prod/dev/host%2Fweb/authenticate", "/authn-k8s/prod/inject_client_cert"
	if got := paths(c.log()); got != in+" "+out+" "+in {
		t.Errorf("asked %s", got)
	}
	c.set(func(f *fake) { f.admit = func(request) int { return http.StatusUnauthorized } })
	wantUnknown(t, client, "answered 401")
	if got := paths(c.log()); got != in+" "+out+" "+in {
		t.Errorf("asked %s", got)
	}
}

func TestK8sWaitsAsLongAsItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.delay = 9 * time.Second
		client := c.client(c.authenticator("host/web"))
		wantFound(t, client)
		c.delay = time.Hour
		other := c.client(c.authenticator("host/web"))
		begin := time.Now()
		wantUnknown(t, other, "no client certificate within 10s", "no such file", "Conjur's log")
		if took := time.Since(begin); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("it took %v", took)
		}
		time.Sleep(2 * time.Hour) // the late one
		c.end(client, other)
	})
}

func TestK8sLoginIsRefused(t *testing.T) {
	for _, status := range []int{401, 403, 404, 500} {
		c := newCluster(t)
		c.inject = func(request) int { return status }
		wantUnknown(t, c.client(c.authenticator("host/web")), "login: the server answered "+strconv.Itoa(status))
		if got := paths(c.log()); got != "/authn-k8s/prod/inject_client_cert" {
			t.Errorf("%d: asked %s", status, got)
		}
	}
}

// A certificate of its own is shown also to a server that names other
// authorities, and only where it is asked for.
func TestCert(t *testing.T) {
	f := newFake(t)
	dir := t.TempDir()
	write := func(name string, pair tls.Certificate) {
		key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{name + ".pem": encode("CERTIFICATE", pair.Certificate[0]), name + ".key": encode("PRIVATE KEY", key)} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, second := f.authority.issue(t, "first", nil, time.Hour), f.authority.issue(t, "second", nil, time.Hour)
	a := &authn.Cert{URL: "https://conjur.test/authn-cert/prod", Login: "web", CertFile: filepath.Join(dir, "c.pem"), KeyFile: filepath.Join(dir, "c.key")}
	wantUnknown(t, f.client(a), "client certificate", "c.pem", "no such file")
	client := f.client(a)
	last := func() string {
		got := f.log()
		if len(got) != 1 || got[0].certificate == nil || got[0].body != "" || got[0].path != "/authn-cert/prod/dev/host%2Fweb/authenticate" {
			t.Fatalf("asked %+v", got)
		}
		return got[0].certificate.Subject.CommonName
	}
	write("c", first)
	wantFound(t, client)
	if got := last(); got != "first" {
		t.Errorf("shown: %s", got)
	}
	write("next", second) // half of it comes
	if err := os.Rename(filepath.Join(dir, "next.pem"), filepath.Join(dir, "c.pem")); err != nil {
		t.Fatal(err)
	}
	wantFound(t, client)
	if got := last(); got != "first" {
		t.Errorf("half replaced: %s", got)
	}
	if err := os.Rename(filepath.Join(dir, "next.key"), filepath.Join(dir, "c.key")); err != nil {
		t.Fatal(err)
	}
	wantFound(t, client)
	if got := last(); got != "second" {
		t.Errorf("replaced: %s", got)
	}
	f.set(func(f *fake) { f.admit = func(request) int { return http.StatusUnauthorized } })
	wantUnknown(t, client, "answered 401")
}
