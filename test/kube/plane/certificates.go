package plane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority is a certificate authority that lives as long as the plane.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// identity is a certificate and its key, PEM.
type identity struct{ cert, key []byte }

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate("test control plane")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert: cert, key: key}, err
}

// certificate is a template. It is valid from an hour ago, so that a clock
// that is set back does no harm.
func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().AddDate(0, 0, 30),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

// issue makes a client certificate for a user and a group ("": none), or,
// where there are hosts, a server's.
func (a *authority) issue(user, group string, hosts ...string) (identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	template := certificate(user)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if group != "" {
		template.Subject.Organization = []string{group}
	}
	if len(hosts) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return identity{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	return identity{cert: block("CERTIFICATE", der), key: block("PRIVATE KEY", private)}, err
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// write writes ca.crt. The key stays in memory.
func (a *authority) write(dir string) error {
	return os.WriteFile(filepath.Join(dir, "ca.crt"), block("CERTIFICATE", a.cert.Raw), 0o600)
}

// write writes NAME.crt and NAME.key.
func (id identity) write(dir, name string) error {
	return errors.Join(
		os.WriteFile(filepath.Join(dir, name+".crt"), id.cert, 0o600),
		os.WriteFile(filepath.Join(dir, name+".key"), id.key, 0o600),
	)
}

// writeServiceAccountKey writes sa.key and sa.pub, with which the API server
// signs and checks the tokens of service accounts. RSA, as most clusters have
// it: what reads the tokens then meets RS256.
func writeServiceAccountKey(dir string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "sa.pub"), block("PUBLIC KEY", public), 0o600),
		os.WriteFile(filepath.Join(dir, "sa.key"), block("PRIVATE KEY", private), 0o600),
	)
}

// kubeconfig is one that needs no other file.
func (a *authority) kubeconfig(url string, id identity) []byte {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: admin
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: admin
  context: {cluster: test, user: admin}
current-context: admin
`, url, encode(block("CERTIFICATE", a.cert.Raw)), encode(id.cert), encode(id.key))
}
