package conjurd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"time"
)

// Lifetimes of certificates. Validity begins in the past, because clients' clocks
// may be slow.
const (
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 397 * 24 * time.Hour
	backdate = time.Hour
)

// CA is a server's own certificate authority, as PEM. Clients need Cert; Key is
// secret.
type CA struct{ Cert, Key []byte }

// NewCA creates a certificate authority.
func NewCA() (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "conjurd CA"},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &CA{Cert: encodePEM("CERTIFICATE", der), Key: encodePEM("PRIVATE KEY", keyDER)}, nil
}

// LoopbackHosts lists the name and the addresses of loopback.
func LoopbackHosts() []string { return []string{"localhost", "127.0.0.1", "::1"} }

// Issue creates a server certificate for the names and addresses. Without any, it
// covers loopback: localhost, 127.0.0.1 and ::1.
func (ca *CA) Issue(hosts ...string) (tls.Certificate, error) {
	if len(hosts) == 0 {
		hosts = LoopbackHosts()
	}
	pair, err := tls.X509KeyPair(ca.Cert, ca.Key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("CA: %w", err)
	}
	if !pair.Leaf.IsCA {
		return tls.Certificate{}, errors.New("CA: the certificate is not that of a CA")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := leaf(hosts)
	der, err := x509.CreateCertificate(rand.Reader, t, pair.Leaf, &key.PublicKey, pair.PrivateKey)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der, pair.Certificate[0]}, PrivateKey: key}, nil
}

func leaf(hosts []string) *x509.Certificate {
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: hosts[0]},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, h := range hosts {
		if a, err := netip.ParseAddr(h); err == nil {
			t.IPAddresses = append(t.IPAddresses, a.AsSlice())
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	return t
}

func serial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b)
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
