package certs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/internal/certs"
	"github.com/secretsync/syncer/internal/safefile"
)

// pair returns a certificate that is valid until a time, and its key, as PEM.
func pair(t *testing.T, until time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// TestBoundsOfFiles: each file may have as many bytes as other files.
func TestBoundsOfFiles(t *testing.T) {
	dir := t.TempDir()
	certificate, key := pair(t, time.Now().Add(time.Hour))
	// padded writes a text with a rest that takes no space.
	padded := func(name string, text []byte, size int) string {
		path := filepath.Join(dir, name)
		err := os.WriteFile(path, text, 0o600)
		if err == nil && size > 0 {
			err = os.Truncate(path, int64(size))
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	crt, private := padded("crt", certificate, 0), padded("key", key, 0)
	for less := -1; less <= 1; less++ {
		long, longKey := padded("long", certificate, safefile.MaxInput+less), padded("longkey", key, safefile.MaxInput+less)
		_, roots := certs.ReadRoots(long)
		public, publicErr := certs.ReadPair(long, private)
		secret, secretErr := certs.ReadPair(crt, longKey)
		for what, err := range map[string]error{"roots": roots, "certificate": publicErr, "key": secretErr} {
			if (err == nil) != (less <= 0) {
				t.Errorf("%s, the bound%+d: %v", what, less, err)
			}
		}
		if less <= 0 && (len(public.Certificate) != 1 || secret.PrivateKey == nil) {
			t.Errorf("the bound%+d: the pair is not whole", less)
		}
	}
	if _, err := certs.ReadPair(crt, crt); err == nil {
		t.Error("a certificate is taken as its key")
	}
}

// TestBoundsOfExpiry: a certificate is valid to its last second, as a server takes it.
func TestBoundsOfExpiry(t *testing.T) {
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	certificate, _ := pair(t, until)
	text := slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no")}), certificate)
	for _, after := range []time.Duration{-1, 0, 1} {
		names := certs.Expired(text, until.Add(after))
		if expired := after > 0; expired != (len(names) == 1) || expired && !strings.HasPrefix(names[0], `"CN=ca" on `) {
			t.Errorf("%v after its end: %q", after, names)
		}
	}
}
