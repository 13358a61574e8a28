package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd"
)

func TestLoginByCertificate(t *testing.T) {
	t.Parallel()
	l := newLogin(t, "authn-cert/prod", "app", "authn-cert/cn: app.test")
	authority, foreign := newSigner(t), newSigner(t)
	l.admit(map[string]string{"ca-cert": string(authority.Cert)})
	l.Env["CONJUR_AUTHN_CERT_FILE"], l.Env["CONJUR_AUTHN_CERT_KEY_FILE"] = l.Path("app.pem"), l.Path("app.key")
	usual := func() { l.present(authority, "app.test", 5*time.Minute) }
	usual()
	l.survives(
		trouble{name: "a renewed certificate", begin: usual, end: usual},
		trouble{name: "another authority's certificate", begin: func() { l.present(foreign, "app.test", time.Hour) }, end: usual, named: refused},
	)
}

// present writes a new certificate, good from five minutes ago for so long, and
// its key.
func (l *login) present(a *signer, name string, life time.Duration) {
	l.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		l.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		l.Fatal(err)
	}
	now := time.Now()
	text, err := a.sign(key.Public(), &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-5 * time.Minute), NotAfter: now.Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		l.Fatal(err)
	}
	l.write(l.Path("new.pem"), string(text))
	l.write(l.Path("new.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	for _, kind := range []string{".pem", ".key"} {
		if err := os.Rename(l.Path("new"+kind), l.Path("app"+kind)); err != nil {
			l.Fatal(err)
		}
	}
}

// signer is an authority for the certificates of workloads.
type signer struct {
	*conjurd.CA
	pair tls.Certificate
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	ca, err := conjurd.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(ca.Cert, ca.Key)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{ca, pair}
}

// sign makes a certificate, in PEM.
func (s *signer) sign(key crypto.PublicKey, template *x509.Certificate) ([]byte, error) {
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	der, err := x509.CreateCertificate(rand.Reader, template, s.pair.Leaf, key, s.pair.PrivateKey)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}
