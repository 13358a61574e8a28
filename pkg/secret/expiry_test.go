package secret_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// certificate is one that expires then, as PEM, and its key.
func certificate(t *testing.T, expires time.Time) (crt, private string) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: expires.Add(-time.Hour), NotAfter: expires}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

func TestExpires(t *testing.T) {
	soon, late := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	first, key := certificate(t, soon)
	second, _ := certificate(t, late)
	begin, _, _ := strings.Cut(first, "\n")
	torn := first[:len(first)/2]
	for name, c := range map[string]struct {
		value string
		want  time.Time
	}{
		"nothing":                           {"", time.Time{}},
		"a password":                        {"-----BEGIN", time.Time{}},
		"a key":                             {key, time.Time{}},
		"a certificate":                     {second, late},
		"a chain, its leaf first":           {first + second, soon},
		"a chain, its leaf last":            {second + first, soon},
		"with Windows' line ends":           {strings.ReplaceAll(first, "\n", "\r\n"), soon},
		"behind its key, between texts":     {"subject=x\n" + key + "issuer=y\n" + first + "z", soon},
		"one that is cut off":               {torn, time.Time{}},
		"one that is cut off, then another": {torn + "\n" + second, late},
		"one that is no certificate":        {begin + "\nAAAA\n-----END CERTIFICATE-----\n" + second, late},
		"many beginnings":                   {strings.Repeat(begin+"\n", 100_000), time.Time{}},
		"more than are looked at":           {strings.Repeat(second, 256) + first, late},
	} {
		if got := secret.Expires([]byte(c.value)); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
