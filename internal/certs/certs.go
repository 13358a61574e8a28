// Package certs reads certificates and their keys from PEM.
package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/secretsync/syncer/internal/safefile"
)

// ErrNone means that a text has no certificate that can be read. ErrEscaped names a common
// reason. Their words follow the name of the text.
var (
	ErrNone    = errors.New("contains no PEM certificate; begin it with -----BEGIN CERTIFICATE-----")
	ErrEscaped = errors.New(`has \n as two letters instead of line breaks; write real line breaks`)
)

// Escaped reports whether the line breaks of a PEM text are the two letters \n, as after a
// detour through JSON or an environment file.
func Escaped(text []byte) bool { return bytes.Contains(text, []byte(`-----\n`)) }

// Roots returns the certificates of authorities in a text.
func Roots(text []byte) (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	switch {
	case roots.AppendCertsFromPEM(text):
		return roots, nil
	case Escaped(text):
		return nil, ErrEscaped
	}
	return nil, ErrNone
}

// Expired names the certificates in a text that have expired, each with its last day.
func Expired(text []byte, now time.Time) (names []string) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		crt, err := x509.ParseCertificate(block.Bytes)
		if err == nil && now.After(crt.NotAfter) {
			names = append(names, fmt.Sprintf("%q on %s", crt.Subject, crt.NotAfter.Format(time.DateOnly)))
		}
	}
	return names
}

// ReadRoots is Roots for a file. Its errors name the file.
func ReadRoots(path string) (*x509.CertPool, error) {
	text, err := safefile.Read(path, safefile.MaxInput)
	if err != nil {
		return nil, err
	}
	roots, err := Roots(text)
	if err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return roots, nil
}

// ReadPair returns the certificate in one file with its private key in another one.
func ReadPair(certificate, key string) (tls.Certificate, error) {
	public, err := safefile.Read(certificate, safefile.MaxInput)
	if err != nil {
		return tls.Certificate{}, err
	}
	private, err := safefile.Read(key, safefile.MaxInput)
	if err != nil {
		return tls.Certificate{}, err
	}
	defer clear(private)
	switch {
	case Escaped(public):
		return tls.Certificate{}, fmt.Errorf("%s %w", certificate, ErrEscaped)
	case Escaped(private):
		return tls.Certificate{}, fmt.Errorf("%s %w", key, ErrEscaped)
	}
	return tls.X509KeyPair(public, private)
}
