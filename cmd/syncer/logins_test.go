package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// front has the authenticators that the server has not: it checks what they
// send, and logs the host in by its API key.
type front struct {
	*httptest.Server
	w *world
	// admit is the check.
	admit func(r *http.Request, body string) bool
	away  atomic.Bool // all is answered with 503
	count atomic.Int64
}

// newFront has processes log in at the path, by what admit accepts.
func newFront(w *world, path string, admit func(*http.Request, string) bool) *front {
	w.t.Helper()
	f := &front{w: w, admit: admit}
	f.Server = httptest.NewUnstartedServer(f)
	f.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	f.StartTLS()
	w.t.Cleanup(f.Close)
	delete(w.env, "CONJUR_AUTHN_API_KEY")
	w.env["CONJUR_AUTHN_URL"] = f.URL + path
	w.env["CONJUR_SSL_CERTIFICATE"] = string(w.server.CA) + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw}))
	return f
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	f.count.Add(1)
	switch {
	case f.away.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case strings.HasSuffix(r.URL.Path, "/inject_client_cert"):
		if f.admit(r, string(text)) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		fallthrough
	case !f.admit(r, string(text)):
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	login := f.w.server.URL + "/authn/" + conjurdtest.Account + "/host%2Fapp/authenticate"
	resp, err := f.w.server.Client().Post(login, "text/plain", strings.NewReader(f.w.server.HostKey("app")))
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

// shortLived are tokens that end soon, so that there are several logins.
func shortLived() conjurdtest.Option { return conjurdtest.TokenTTL(4 * time.Second) }

// goesOn wants deliveries before, while and after the issuer of credentials is
// away for longer than a token lives: unknown, named, and nothing removed.
func (f *front) goesOn(named string, away, back func()) {
	w := f.w
	w.t.Helper()
	w.group("db", "json", "db/password")
	p := w.start()
	w.await("db.json", w.value["db/password"])
	w.awaitProvided()
	before := w.file("db.json")
	away()
	eventually(w.t, "a word of it in the log", func() bool { return strings.Contains(p.Log(), named) })
	w.renew("db/password")
	w.beat()
	if got := w.file("db.json"); got != before {
		w.t.Errorf("while nobody vouches for Syncer the file became %q", got)
	}
	back()
	w.await("db.json", w.value["db/password"])
	p.Stop()
	for _, secret := range w.values {
		if strings.Contains(p.Log(), secret) {
			w.t.Error("a value or a credential is in the log")
		}
	}
}

// cloudWorld is a machine on a cloud whose metadata service answers as told.
func cloudWorld(t *testing.T) (w *world, token string, answer *atomic.Pointer[http.HandlerFunc]) {
	w = newWorld(t, shortLived())
	token = "head.c4n4ry-of-the-cloud.sign"
	w.values = append(w.values, token)
	answer = &atomic.Pointer[http.HandlerFunc]{}
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*answer.Load())(w, r) }))
	t.Cleanup(metadata.Close)
	w.env["CONJUR_AUTHN_METADATA_URL"] = metadata.URL
	return w, token, answer
}

func TestLoginOnGCP(t *testing.T) {
	t.Parallel()
	w, token, answer := cloudWorld(t)
	good := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("audience") != "conjur/"+conjurdtest.Account+"/host/app" || r.Header.Get("Metadata-Flavor") != "Google" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		io.WriteString(w, token)
	})
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>sign in</html>") })
	answer.Store(&good)
	f := newFront(w, "/authn-gcp", func(r *http.Request, body string) bool {
		return r.URL.Path == "/authn-gcp/"+conjurdtest.Account+"/authenticate" && body == "jwt="+token
	})
	f.goesOn("Google Cloud's metadata service: what came is not a token", func() { answer.Store(&page) }, func() { answer.Store(&good) })
}

func TestLoginOnAzure(t *testing.T) {
	t.Parallel()
	w, token, answer := cloudWorld(t)
	w.env["CONJUR_AUTHN_AZURE_CLIENT_ID"] = "user-assigned"
	good := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("client_id") != "user-assigned" || r.Header.Get("Metadata") != "true" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"access_token":%q}`, token)
	})
	elsewhere := http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound).ServeHTTP
	redirecting := http.HandlerFunc(elsewhere)
	answer.Store(&good)
	f := newFront(w, "/authn-azure/prod", func(r *http.Request, body string) bool {
		return r.URL.EscapedPath() == "/authn-azure/prod/"+conjurdtest.Account+"/host%2Fapp/authenticate" && body == "jwt="+token
	})
	f.goesOn("it answered 302", func() { answer.Store(&redirecting) }, func() { answer.Store(&good) })
}

func TestLoginOnAWS(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shortLived())
	const canary = "c4n4ry-of-the-role"
	w.values = append(w.values, canary)
	var gone atomic.Bool
	pods := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() || r.Header.Get("Authorization") != "pod-token" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `{"AccessKeyId":"ASIAPOD","SecretAccessKey":%q,"Token":%q,"Expiration":%q}`, canary, canary, time.Now().Add(6*time.Minute).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(pods.Close)
	w.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"], w.env["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = pods.URL, "pod-token"
	w.env["AWS_REGION"], w.env["AWS_EC2_METADATA_DISABLED"] = "eu-central-1", "true"
	var refuse atomic.Bool
	f := newFront(w, "/authn-iam/prod", func(_ *http.Request, body string) bool {
		var headers map[string]string
		return json.Unmarshal([]byte(body), &headers) == nil && headers["Host"] == "sts.eu-central-1.amazonaws.com" &&
			strings.Contains(headers["Authorization"], "Credential=ASIAPOD/") && headers["X-Amz-Security-Token"] == canary && !refuse.Load()
	})
	// Conjur refuses the keys, and others cannot be had.
	f.goesOn("AWS's credentials", func() { gone.Store(true); refuse.Store(true) }, func() { gone.Store(false); refuse.Store(false) })
}

// TestLoginInAPod goes all the way of authn-k8s: the certificate comes by the
// binary that is called sh in the container.
func TestLoginInAPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shortLived())
	if err := os.Mkdir(w.path("ssl"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.env["MY_POD_NAME"], w.env["MY_POD_NAMESPACE"] = "web-0", "shop"
	w.env["CONJUR_CLIENT_CERT_PATH"] = w.path("ssl", "client.pem")
	w.env["CONJUR_AUTHN_LOGIN"] = "host/app"
	authority := newPodAuthority(t)
	var issued atomic.Pointer[x509.Certificate]
	var silent atomic.Bool // the script does not get through
	f := newFront(w, "/authn-k8s/prod", func(r *http.Request, body string) bool {
		if !strings.HasSuffix(r.URL.Path, "/inject_client_cert") {
			current := issued.Load()
			return len(r.TLS.PeerCertificates) == 1 && current != nil && r.TLS.PeerCertificates[0].Equal(current)
		}
		if silent.Load() {
			return true
		}
		certificate := authority.sign(t, body)
		issued.Store(certificate)
		go execShell(w, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})))
		return true
	})
	w.env["CONJUR_CLIENT_CERT_RETRY_COUNT_LIMIT"] = "2"
	f.goesOn("no client certificate within 2s", func() { silent.Store(true); issued.Store(nil) }, func() { silent.Store(false) })
	if left, _ := os.ReadDir(w.path("ssl")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// execShell feeds the script to sh in the container, as the kubelet does.
func execShell(w *world, certificate string) {
	self, err := os.Executable()
	if err != nil {
		return
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"sh"}
	cmd.Env = []string{asCommand + "=1", "CONJUR_CLIENT_CERT_PATH=" + w.path("ssl", "client.pem")}
	cmd.Stdin = strings.NewReader(scriptBefore + certificate + scriptAfter)
	_ = cmd.Run() // Conjur does not look at how it ends either
}

// podAuthority signs the certificates of Pods.
type podAuthority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newPodAuthority(t *testing.T) *podAuthority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &podAuthority{&x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}, key}
}

func (a *podAuthority) sign(t *testing.T, request string) *x509.Certificate {
	block, _ := pem.Decode([]byte(request))
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Error(err)
		return nil
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: csr.Subject, URIs: []*url.URL(csr.URIs), NotBefore: time.Now(), NotAfter: time.Now().Add(72 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, csr.PublicKey, a.key)
	if err != nil {
		t.Error(err)
		return nil
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Error(err)
	}
	return certificate
}

// podsOfOne is a cluster that has one Pod. What is run there is sh by the name
// of this binary, with the input left open after the script.
type podsOfOne struct{ w *world }

func (podsOfOne) Pod(_ context.Context, namespace, name string) (*conjurd.Pod, error) {
	if namespace != "shop" || name != "web-0" {
		return nil, nil
	}
	return &conjurd.Pod{ServiceAccount: "sa", Containers: []string{"app", "syncer"}}, nil
}

func (p podsOfOne) Exec(_ context.Context, _, _, container string, script []byte) error {
	self, err := os.Executable()
	if err != nil || container != "syncer" {
		return fmt.Errorf("the container %s: %w", container, err)
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"sh"}
	cmd.Env = []string{asCommand + "=1", "CONJUR_CLIENT_CERT_PATH=" + p.w.path("ssl", "client.pem")}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := in.Write(script); err != nil {
		return err
	}
	state, err := cmd.Process.Wait() // which does not close the input
	if err == nil && state.ExitCode() != 0 {
		err = fmt.Errorf("sh ended as %v", state)
	}
	return err
}

const podPolicy = `
- !policy
  id: conjur/authn-k8s/prod
  body:
  - !webservice
  - !policy { id: ca, body: [ !variable cert, !variable key ] }
  - !policy { id: apps, body: [ !host { id: web, annotations: { authn-k8s/namespace: shop, authn-k8s/service-account: sa, authn-k8s/authentication-container-name: syncer } } ] }
  - !permit { role: !host apps/web, privileges: [read, authenticate], resource: !webservice }
`

// TestLoginByCertificateOfConjurd logs in by authn-k8s all the way, several
// times; and no more when the host is deleted, which removes nothing.
func TestLoginByCertificateOfConjurd(t *testing.T) {
	t.Parallel()
	pods := &podsOfOne{}
	w := newWorld(t, shortLived(), conjurdtest.With(func(o *conjurd.Options) { o.Kubernetes = pods }))
	pods.w = w
	w.server.Policy(podPolicy)
	certificate, key := caPair(t)
	w.server.Set("conjur/authn-k8s/prod/ca/cert", certificate)
	w.server.Set("conjur/authn-k8s/prod/ca/key", key)
	if err := os.Mkdir(w.path("ssl"), 0o700); err != nil {
		t.Fatal(err)
	}
	delete(w.env, "CONJUR_AUTHN_API_KEY")
	w.host = "conjur/authn-k8s/prod/apps/web"
	w.env["CONJUR_AUTHN_LOGIN"] = "host/" + w.host
	w.env["CONJUR_AUTHN_URL"] = w.server.URL + "/authn-k8s/prod"
	w.env["MY_POD_NAME"], w.env["MY_POD_NAMESPACE"] = "web-0", "shop"
	w.env["CONJUR_CLIENT_CERT_PATH"] = w.path("ssl", "client.pem")
	w.group("db", "json", "db/password")
	p := w.start()
	w.await("db.json", w.value["db/password"])
	w.server.ResetCounts()
	eventually(t, "several logins", func() bool { return w.server.Counts().Authentications >= 2 })
	w.renew("db/password")
	w.await("db.json", w.value["db/password"])
	before := w.file("db.json")
	w.server.Policy("- !delete { record: !host conjur/authn-k8s/prod/apps/web }\n")
	eventually(t, "the refusal in the log", func() bool { return strings.Contains(p.Log(), "the server answered 401") })
	w.beat()
	if got := w.file("db.json"); got != before {
		t.Errorf("when the host was deleted the file became %q", got)
	}
	p.Stop()
}

// caPair is an authority in PEM.
func caPair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * 365 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}))
}
