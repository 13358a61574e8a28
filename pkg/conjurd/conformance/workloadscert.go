package conformance

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"crypto"
)

// podURI names the Pod in a certificate, or in a request for one.
const podURI = "spiffe://cluster.local/namespace/" + PodName + "/podname/" + PodName

// k8s logs in as a Pod does. It requests a certificate, which the server writes
// into the container, and presents it.
func (s *suite) k8s(t *testing.T) {
	w := s.target.Workloads
	if w == nil {
		t.Log("the target has no cluster")
		return
	}
	ca := newAuthority(t)
	of := func(more ...string) string {
		return annotated(append([]string{"authn-k8s/namespace", PodName}, more...)...)
	}
	long := strings.Repeat("long-", 14)
	s.configure(t, "authn-k8s/"+branch, map[string]string{"ca/cert": ca.text(), "ca/key": ca.keyText(t)}, map[string]string{
		"pod": of("authn-k8s/service-account", PodName), "second": of(), "out": of(), long: of(),
		"service": annotated("authn-k8s/namespace", "x", "authn-k8s/"+branch+"/namespace", PodName),
		"away":    annotated("authn-k8s/namespace", "elsewhere"), "misspelt": of("authn-k8s/serviceaccount", PodName),
		"both": of("authn-k8s/deployment", "a", "authn-k8s/stateful-set", "b"), "container": of("authn-k8s/authentication-container-name", "none"),
		PodName + "/*/*": "", "elsewhere/*/*": "", PodName + "/service_account/" + PodName: "",
	})
	key := newKey(t)
	inject := func(name, host string, want answer) exchange {
		return exchange{name: name, basis: read, req: "POST /authn-k8s/{p}/inject_client_cert", body: request(t, key, strings.ReplaceAll(host, "/", "."), podURI),
			header: map[string]string{"Host-Id-Prefix": "host.{p}.workloads", "Content-Type": "text/plain"}, want: want}
	}
	accepted := answer{status: 202, kind: asHTML}
	plain := inject("a request that is none", "pod", unauthorized)
	plain.body = "x"
	elsewhere := inject("another Pod", "pod", unauthorized)
	elsewhere.body = request(t, key, "pod", strings.Replace(podURI, "podname/"+PodName, "podname/none", 1))
	placed := inject("a host without a prefix is looked for among the service's own", "pod", unauthorized)
	delete(placed.header, "Host-Id-Prefix")
	s.runAll(t, []exchange{
		plain, elsewhere, placed,
		inject("no right", "out", forbidden),
		inject("no such host", "none", unauthorized),
		inject("another namespace", "away", unauthorized),
		inject("an unknown annotation", "misspelt", unauthorized),
		inject("two kinds of controllers", "both", unauthorized),
		inject("a container that is not there", "container", unauthorized),
		inject("an id of another namespace", "elsewhere/*/*", unauthorized),
		inject("an id of any", PodName+"/*/*", accepted),
		inject("an id of a service account", PodName+"/service_account/"+PodName, accepted),
		inject("the service's own annotation", "service", accepted),
	})
	tried := inject("a common name of more than 64 characters", long, accepted)
	tried.basis = partly
	s.run(t, tried)
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	tried = inject("an RSA key of 2048 bits", "pod", accepted)
	tried.basis, tried.body = partly, request(t, weak, "pod", podURI)
	s.run(t, tried)
	tried = inject("an EC key", "pod", accepted)
	tried.basis = partly
	s.run(t, tried)
	s.k8sCertificate(t, key, ca)
}

// k8sCertificate checks the latest certificate, and logs in with it.
func (s *suite) k8sCertificate(t *testing.T, key *ecdsa.PrivateKey, ca *authority) {
	script := s.target.Workloads.Injected()
	begin := max(0, bytes.Index(script, []byte("-----BEGIN CERTIFICATE-----\n")))
	block, rest := pem.Decode(script[begin:])
	if block == nil || bytes.Contains(rest, []byte("-----BEGIN")) {
		t.Fatal("there is not one PEM block in the script")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if leaf.Subject.CommonName != "host."+branch+".workloads.pod" || len(leaf.URIs) != 1 || leaf.URIs[0].String() != podURI ||
		leaf.KeyUsage != x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment || len(leaf.ExtKeyUsage) > 0 ||
		time.Until(leaf.NotAfter).Round(time.Hour) != 72*time.Hour {
		t.Errorf("the certificate is for %q, %v, until %v, with the usage %v", leaf.Subject.CommonName, leaf.URIs, leaf.NotAfter, leaf.KeyUsage)
	}
	brought := tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}
	authenticate := func(name, host string, certificate *tls.Certificate, want answer) exchange {
		return exchange{name: name, basis: read, req: "POST /authn-k8s/{p}/{a}/" + workloadHost(host) + "/authenticate", certificate: certificate, want: want}
	}
	foreign := newAuthority(t).issue(t, key, leaf)
	old := *leaf
	old.NotAfter = time.Now().Add(-time.Minute)
	expired := ca.issue(t, key, &old)
	s.runAll(t, []exchange{
		authenticate("log in with it", "pod", &brought, isGood),
		authenticate("log in with it again", "pod", &brought, isGood),
		authenticate("as another host", "second", &brought, unauthorized),
		authenticate("without it", "pod", nil, unauthorized),
		authenticate("with another authority's", "pod", &foreign, unauthorized),
		authenticate("with one that has expired", "pod", &expired, unauthorized),
	})
}

// cert checks that authn-cert is absent, as on the open-source server.
func (s *suite) cert(t *testing.T) {
	s.run(t, exchange{name: "absent", req: "POST /authn-cert/{p}/{a}/host%2Fx/authenticate", want: nowhere})
}

// authority signs the certificates of workloads.
type authority struct {
	leaf *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "conformance"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{leaf, key}
}

func (a *authority) text() string { return encode("CERTIFICATE", a.leaf.Raw) }

func (a *authority) keyText(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	return encode("PRIVATE KEY", der)
}

// issue issues a certificate for the key.
func (a *authority) issue(t *testing.T, key crypto.Signer, template *x509.Certificate) tls.Certificate {
	t.Helper()
	c := *template
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	der, err := x509.CreateCertificate(rand.Reader, &c, a.leaf, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// request returns a signing request.
func request(t *testing.T, key crypto.Signer, name, uri string) string {
	t.Helper()
	parsed, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}, URIs: []*url.URL{parsed}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE REQUEST", der)
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
