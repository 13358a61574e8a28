package authn

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn/inject"
)

// loginPause spaces attempts to renew a valid certificate, because each makes
// Conjur run a command in this container.
const loginPause = 5 * time.Minute

// K8s authenticates a Pod by a client certificate that Conjur injects into its
// container. The certificate stays in memory. It is renewed after two thirds of its
// lifetime.
type K8s struct {
	URL            string // as in https://host/authn-k8s/service
	Login          string // of a host, with "host/" and without any dot
	Namespace, Pod string // of this process
	Inbox          *inject.Inbox
	Wait           time.Duration // for the certificate, after Conjur accepted the request

	current *workload // nil if there is none yet
}

// workload is a certificate with its key. Its times use the local monotonic clock,
// because the server's clock may differ.
type workload struct {
	certificate   tls.Certificate
	renew, expire time.Time
}

// Credential implements conjur.Authenticator.
func (k *K8s) Credential(ctx context.Context, send conjur.Send) (conjur.Credential, error) {
	made := false
	if k.current == nil || !time.Now().Before(k.current.renew) {
		next, err := k.login(ctx, send)
		switch {
		case err == nil:
			k.current, made = next, true
		case k.current == nil || ctx.Err() != nil || !time.Now().Before(k.current.expire):
			return conjur.Credential{}, err
		default:
			k.current.renew = time.Now().Add(loginPause) // the previous certificate is still valid
		}
	}
	return conjur.Credential{
		URL: k.URL, Login: k.Login, Certificate: &k.current.certificate,
		Refused: func() bool { k.current = nil; return !made },
	}, nil
}

// login requests a certificate for a new key from Conjur.
func (k *K8s) login(ctx context.Context, send conjur.Send) (*workload, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	name, prefix := splitLogin(k.Login)
	csr, err := k.certificateRequest(name, key)
	if err != nil {
		return nil, err
	}
	x, err := k.Inbox.Await(ctx, public, k.Wait, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(k.URL, "/")+"/inject_client_cert", bytes.NewReader(csr))
		if err != nil {
			return errors.New("the authentication URL is malformed")
		}
		req.Header.Set("Content-Type", "text/plain")
		if prefix != "" {
			req.Header.Set("Host-Id-Prefix", prefix)
		}
		return send(ctx, req)
	})
	if err != nil {
		return nil, fmt.Errorf("requesting a client certificate from Conjur: %w", err)
	}
	now, life := time.Now(), x.NotAfter.Sub(x.NotBefore)
	return &workload{
		certificate: tls.Certificate{Certificate: [][]byte{x.Raw}, PrivateKey: key, Leaf: x},
		renew:       now.Add(life / 3 * 2),
		expire:      now.Add(life),
	}, nil
}

// certificateRequest returns the signing request for this Pod, as PEM.
func (k *K8s) certificateRequest(name string, key *ecdsa.PrivateKey) ([]byte, error) {
	pod := &url.URL{Scheme: "spiffe", Host: "cluster.local", Path: "/namespace/" + k.Namespace + "/podname/" + k.Pod}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: name}, URIs: []*url.URL{pod},
	}, key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), err
}

// splitLogin splits a host's login for Conjur, which joins the parts again and
// replaces each dot by a slash. The last three parts are the common name of the
// certificate. In a short login it is the last part.
func splitLogin(login string) (name, prefix string) {
	parts := strings.Split(login, "/")
	cut := len(parts) - 1
	if len(parts) > 3 {
		cut = len(parts) - 3
	}
	return strings.Join(parts[cut:], "."), strings.Join(parts[:cut], ".")
}
