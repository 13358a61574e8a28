// Package certs reads certificates and their keys from PEM.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/secretsync/syncer/internal/safefile"
)

// most bounds the size of a file.
const most = 16 << 20

// ErrNone means that a text has no certificate that can be read.
var ErrNone = errors.New("no certificate in PEM form in it")

// Roots returns the certificates of authorities in a text.
func Roots(pem []byte) (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, ErrNone
	}
	return roots, nil
}

// ReadRoots is Roots for a file. Its errors name the file.
func ReadRoots(path string) (*x509.CertPool, error) {
	pem, err := safefile.Read(path, most)
	if err != nil {
		return nil, err
	}
	roots, err := Roots(pem)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return roots, nil
}

// ReadPair returns the certificate in one file with its private key in another one.
func ReadPair(certificate, key string) (tls.Certificate, error) {
	public, err := safefile.Read(certificate, most)
	if err != nil {
		return tls.Certificate{}, err
	}
	private, err := safefile.Read(key, most)
	if err != nil {
		return tls.Certificate{}, err
	}
	defer clear(private)
	return tls.X509KeyPair(public, private)
}
