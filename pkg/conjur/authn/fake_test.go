package authn_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request is one that the fake was sent before data.
type request struct {
	path, body, contentType, prefix string
	length                          int64             // of the body, as it is announced; -1: it is not
	certificate                     *x509.Certificate // the client's
}

// fake is a Conjur that has one variable, "app/a". It serves TLS over pipes, so
// that the clock of a test need not be the real one.
type fake struct {
	*conjurtest.Double
	t         *testing.T
	authority *authority
	config    conjur.Config
	stop      func()
	// inject answers a request for a certificate, and admit one for a token:
	// with a status.
	inject, admit func(request) int

	mu   sync.Mutex
	seen []request
	used map[string]bool // tokens; each is good for one read
}

func newFake(t *testing.T) *fake {
	f := &fake{
		Double: conjurtest.New(), t: t, authority: newAuthority(t),
		inject: func(request) int { return http.StatusNotFound },
		admit:  func(request) int { return http.StatusOK },
		used:   map[string]bool{},
	}
	f.Set("app/a", "v")
	f.Intercept = f.answer
	pair := f.authority.issue(t, "conjur.test", nil, time.Hour*24*3650)
	f.config, f.stop = f.PipeTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert,
		// Of another authority than the client's certificate is.
		ClientCAs: x509.NewCertPool()})
	t.Cleanup(f.stop)
	return f
}

// end ends what a bubble of synctest must not leave.
func (f *fake) end(clients ...*conjur.Client) {
	for _, c := range clients {
		c.Close()
	}
	f.stop()
	time.Sleep(time.Hour)
}

// client logs in anew for each call.
func (f *fake) client(a conjur.Authenticator) *conjur.Client {
	f.t.Helper()
	config := f.config
	config.Authenticator, config.CA = a, f.authority.pem()
	c, err := conjur.New(config)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.Close)
	return c
}

// answer takes the Double's place, but for a read with a token that is not used up.
func (f *fake) answer(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
	f.mu.Lock()
	if kind == conjur.KindBatch {
		token := r.Header.Get("Authorization")
		used := f.used[token]
		f.used[token] = true
		f.mu.Unlock()
		if used {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return used
	}
	body, _ := io.ReadAll(r.Body)
	got := request{path: r.URL.EscapedPath(), body: string(body), contentType: r.Header.Get("Content-Type"), prefix: r.Header.Get("Host-Id-Prefix"), length: r.ContentLength}
	if len(r.TLS.PeerCertificates) > 0 {
		got.certificate = r.TLS.PeerCertificates[0]
	}
	f.seen = append(f.seen, got)
	inject, admit := f.inject, f.admit
	f.mu.Unlock()
	status := http.StatusNotFound
	if kind == conjur.KindAuthenticate {
		if status = admit(got); status == http.StatusOK {
			f.Admit(w)
			return true
		}
	} else if strings.HasSuffix(got.path, "/inject_client_cert") {
		status = inject(got)
	}
	w.WriteHeader(status)
	return true
}

// set changes how the fake answers.
func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// log returns what was asked since the last log.
func (f *fake) log() []request {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seen
	f.seen = nil
	return seen
}

// paths are those of requests.
func paths(seen []request) string {
	var all []string
	for _, r := range seen {
		all = append(all, r.path)
	}
	return strings.Join(all, " ")
}

// fetch reads the variable.
func fetch(t *testing.T, c *conjur.Client) conjur.Values {
	t.Helper()
	return c.Batch(t.Context(), &conjur.Batch{IDs: []string{"app/a"}}, "")
}

func wantFound(t *testing.T, c *conjur.Client) {
	t.Helper()
	if a := fetch(t, c); string(a.Found["app/a"].Bytes()) != "v" {
		t.Fatalf("not found: %v", a.Err)
	}
}

// wantUnknown wants nothing to follow from the failure, and each of the words
// in the error.
func wantUnknown(t *testing.T, c *conjur.Client, words ...string) {
	t.Helper()
	a := fetch(t, c)
	if len(a.Found) > 0 || a.Err == nil {
		t.Fatalf("form %v, error %v", a.Form, a.Err)
	}
	for _, word := range words {
		if !strings.Contains(a.Err.Error(), word) {
			t.Errorf("no %q in: %v", word, a.Err)
		}
	}
	if strings.Contains(a.Err.Error(), canary) {
		t.Errorf("shown: %v", a.Err)
	}
}

// canary is in each credential, and must be in no error.
const canary = "c4n4ry"

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	ahead       time.Duration // of its clock
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(20, 0, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificate: certificate, key: key}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) pem() string { return encode("CERTIFICATE", a.certificate.Raw) }

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// issue makes a server's or client's certificate; with a request, for its key.
func (a *authority) issue(t *testing.T, name string, csr *x509.CertificateRequest, life time.Duration) tls.Certificate {
	t.Helper()
	key := newKey(t)
	var public any = key.Public()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"conjur.test"},
		NotBefore: time.Now().Add(a.ahead), NotAfter: time.Now().Add(a.ahead + life),
	}
	if csr != nil {
		public, template.DNSNames, template.URIs = csr.PublicKey, nil, csr.URIs
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
