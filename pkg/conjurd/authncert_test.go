package conjurd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"strings"
	"testing"
	"time"

	"crypto/tls"
)

// workload makes a certificate for clients that ca has signed.
func workload(t *testing.T, ca *CA, name, uri string, changes ...func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(ca.Cert, ca.Key)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if uri != "" {
		parsed, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = []*url.URL{parsed}
	}
	for _, change := range changes {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, pair.Leaf, key.Public(), pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

const certPolicy = `
- !policy
  id: conjur/authn-cert/vm
  body:
  - !webservice
  - !variable ca-cert
  - !group apps
  - !permit { role: !group apps, privileges: [read, authenticate], resource: !webservice }
- !policy
  id: conjur/authn-cert/mesh
  body:
  - !webservice
  - !variable ca-cert
  - !variable host-mode
  - !variable trust-domain
  - !variable identity-path
  - !permit { role: !host /apps/ns/shop, privileges: [authenticate], resource: !webservice }
- !host { id: one, annotations: { authn-cert/cn: one.test } }
- !policy { id: apps, body: [ !host ns/shop, !host ns/other ] }
- !grant { role: !group conjur/authn-cert/vm/apps, member: !host one }
`

// TestCert has what the package conformance leaves out.
func TestCert(t *testing.T) {
	ca, other := newCA(t), newCA(t)
	s := open(t, Options{})
	loadRoot(t, s, certPolicy)
	set(t, s, "conjur/authn-cert/vm/ca-cert", string(ca.Cert))
	for name, value := range map[string]string{"ca-cert": string(ca.Cert), "host-mode": "spiffe", "trust-domain": "cluster.test", "identity-path": "apps"} {
		set(t, s, "conjur/authn-cert/mesh/"+name, value)
	}
	const vm, mesh = "/authn-cert/vm/dev/host%2F", "/authn-cert/mesh/dev"
	for name, c := range map[string]struct {
		path   string
		cert   *x509.Certificate
		status int
	}{
		"for servers":                 {vm + "one", workload(t, ca, "one.test", "", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), 401},
		"no host in the path":         {"/authn-cert/vm/dev", workload(t, ca, "one.test", ""), 401},
		"SPIFFE":                      {mesh, workload(t, ca, "", "spiffe://cluster.test/ns/shop"), 200},
		"SPIFFE, no right":            {mesh, workload(t, ca, "", "spiffe://cluster.test/ns/other"), 403},
		"SPIFFE, another domain":      {mesh, workload(t, ca, "", "spiffe://evil.test/ns/shop"), 401},
		"SPIFFE, no URI":              {mesh, workload(t, ca, "ns/shop", ""), 401},
		"SPIFFE, no SPIFFE URI":       {mesh, workload(t, ca, "", "https://cluster.test/ns/shop"), 401},
		"SPIFFE, a host in the path":  {mesh + "/host%2Fapps%2Fns%2Fshop", workload(t, ca, "", "spiffe://cluster.test/ns/shop"), 401},
		"SPIFFE, another authority":   {mesh, workload(t, other, "", "spiffe://cluster.test/ns/shop"), 401},
		"a service that there is not": {"/authn-cert/none/dev/host%2Fone", workload(t, ca, "one.test", ""), 401},
	} {
		w := send(t, s, request{method: "POST", path: c.path + "/authenticate", cert: c.cert})
		if w.Code != c.status {
			t.Errorf("%s: status %d, want %d", name, w.Code, c.status)
		}
	}
}

// TestStrictHasNoAuthnCert, because Conjur 1.24.0 has none.
func TestStrictHasNoAuthnCert(t *testing.T) {
	for strict, want := range map[bool][3]int{false: {401, 404, 204}, true: {404, 401, 401}} {
		s := open(t, Options{Strict: strict})
		loadRoot(t, s, certPolicy)
		got := [3]int{
			send(t, s, request{method: "POST", path: "/authn-cert/vm/dev/host%2Fapp/authenticate"}).Code,
			send(t, s, request{method: "GET", path: "/authn-cert/vm/dev/status", as: "admin"}).Code,
			send(t, s, request{method: "PATCH", path: "/authn-cert/vm/dev", as: "admin", body: "enabled=true"}).Code,
		}
		list := send(t, s, request{method: "GET", path: "/authenticators"}).Body.String()
		if got != want || strings.Contains(list, "authn-cert") == strict {
			t.Errorf("strict %t: statuses %d, want %d; %s", strict, got, want, list)
		}
	}
}
