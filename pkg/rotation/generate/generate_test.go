package generate

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/ssh"

	"github.com/secretsync/syncer/pkg/secret"
)

func parts(t *testing.T, c Config, issuer *Issuer) map[string]secret.Value {
	t.Helper()
	first, err := c.Parts(time.Now(), issuer)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Parts(time.Now(), issuer)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range first {
		if value.Equal(second[name]) {
			t.Errorf("%s is the same twice", name)
		}
	}
	if names := slices.Sorted(maps.Keys(first)); !slices.Equal(names, c.PartNames()) {
		t.Errorf("generated are %q, and named %q", names, c.PartNames())
	}
	return first
}

func TestBytesAndTexts(t *testing.T) {
	if n := parts(t, Config{Random: 48}, nil)["key"].Len(); n != 48 {
		t.Errorf("the key has %d bytes", n)
	}
	password := string(parts(t, Config{Password: &Password{Length: 40, Alphabet: "abcdef0123"}}, nil)["password"].Bytes())
	if len(password) != 40 || strings.Trim(password, "abcdef0123") != "" {
		t.Error("the password is not of its alphabet or length")
	}
	if n := parts(t, Config{Password: &Password{}}, nil)["password"].Len(); n != 32 {
		t.Errorf("a password has %d characters", n)
	}
	if uuid := parts(t, Config{UUID: true}, nil)["uuid"].Bytes(); !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).Match(uuid) {
		t.Error("the UUID has not the form of version 4")
	}
	line := parts(t, Config{Htpasswd: &Password{User: "shop"}}, nil)
	user, hash, _ := strings.Cut(string(line["htpasswd"].Bytes()), ":")
	if user != "shop" || bcrypt.CompareHashAndPassword([]byte(hash), line["password"].Bytes()) != nil {
		t.Error("the htpasswd line does not fit the password")
	}
}

func TestPairs(t *testing.T) {
	for name, c := range map[string]Config{"rsa": {RSA: 2048}, "ecdsa": {ECDSA: "P-384"}, "ed25519": {Ed25519: true}} {
		t.Run(name, func(t *testing.T) {
			pair := parts(t, c, nil)
			private, _ := pem.Decode(pair["private"].Bytes())
			public, _ := pem.Decode(pair["public"].Bytes())
			key, err := x509.ParsePKCS8PrivateKey(private.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			want, err := x509.ParsePKIXPublicKey(public.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			if got := key.(crypto.Signer).Public(); !got.(interface{ Equal(crypto.PublicKey) bool }).Equal(want) {
				t.Error("the public key is not the private one's")
			}
		})
	}
}

func TestSSH(t *testing.T) {
	pair := parts(t, Config{SSH: true}, nil)
	signer, err := ssh.ParsePrivateKey(pair["private"].Bytes())
	if err != nil {
		t.Fatal(err)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(pair["public"].Bytes())
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte("a session"))
	signature, err := signer.Sign(rand.Reader, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	if err := public.Verify(digest[:], signature); err != nil {
		t.Error(err)
	}
}

// TestCertificates has a client trust a server by the authority's certificate.
func TestCertificates(t *testing.T) {
	ca := parts(t, Config{X509: &X509{Subject: "the authority", Authority: true, Days: 365}}, nil)
	leaf := parts(t, Config{X509: &X509{Names: []string{"shop.test", "127.0.0.1"}, CA: "apps/ca"}}, &Issuer{ca["crt"], ca["private"]})
	pair, err := tls.X509KeyPair(leaf["crt"].Bytes(), leaf["private"].Bytes())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca["crt"].Bytes())
	for _, name := range []string{"shop.test", "127.0.0.1"} {
		client, server := net.Pipe()
		done := make(chan error)
		go func() { done <- tls.Server(server, &tls.Config{Certificates: []tls.Certificate{pair}}).Handshake() }()
		if err := tls.Client(client, &tls.Config{RootCAs: roots, ServerName: name}).Handshake(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		client.Close()
		server.Close()
	}
}

func TestIssuers(t *testing.T) {
	leaf := parts(t, Config{X509: &X509{Subject: "no authority"}}, nil)
	ca := parts(t, Config{X509: &X509{Subject: "an authority", Authority: true, Days: 10}}, nil)
	signed := Config{X509: &X509{Subject: "shop", CA: "apps/ca"}}
	for says, issuer := range map[string]*Issuer{
		"has no primary yet":     nil,
		"may not sign others":    {leaf["crt"], leaf["private"]},
		"no certificate with":    {ca["crt"], leaf["private"]},
		"before the one that it": {ca["crt"], ca["private"]},
	} {
		if _, err := signed.Parts(time.Now(), issuer); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is not in: %v", says, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for says, c := range map[string]Config{
		"names 0 kinds":             {},
		"names 2 kinds":             {UUID: true, SSH: true},
		"2048, 3072 or 4096":        {RSA: 1024},
		"P-256, P-384 or P-521":     {ECDSA: "P-224"},
		"not printable ASCII":       {Password: &Password{Alphabet: "abcdefghijé"}},
		"a character twice":         {Password: &Password{Alphabet: "abcdefghijklaa"}},
		"htpasswd has no user":      {Htpasswd: &Password{}},
		"a colon":                   {Htpasswd: &Password{User: "a:b"}},
		"neither subject nor names": {X509: &X509{}},
	} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is not in: %v", says, err)
		}
	}
}

// TestBounds of numbers, and of the characters that texts may contain.
func TestBounds(t *testing.T) {
	for what, c := range map[string]struct {
		least, most int
		config      func(n int) Config
	}{
		"random":          {16, 1024, func(n int) Config { return Config{Random: n} }},
		"password.length": {16, 256, func(n int) Config { return Config{Password: &Password{Length: n}} }},
		"htpasswd.length": {16, 72, func(n int) Config { return Config{Htpasswd: &Password{User: "a", Length: n}} }},
		"password.alphabet": {10, len(alphabet) - 1, func(n int) Config {
			return Config{Password: &Password{Alphabet: (alphabet[:len(alphabet)-1] + "A")[:n]}}
		}},
		"a character of the alphabet": {'!', '~', func(n int) Config {
			return Config{Password: &Password{Alphabet: "abcdefghij" + string(rune(n))}}
		}},
		"a character of the user": {' ', 0x7e, func(n int) Config { return Config{Htpasswd: &Password{User: string(rune(n))}} }},
		"x509.days":               {0, 3650, func(n int) Config { return Config{X509: &X509{Subject: "a", Days: n}} }},
	} {
		for _, n := range []int{c.least - 1, c.least, c.least + 1, c.most - 1, c.most, c.most + 1} {
			if err := c.config(n).Check(); (err == nil) != (n >= c.least && n <= c.most) {
				t.Errorf("%s of %d: %v", what, n, err)
			}
		}
	}
	for days, lasts := range map[int]int{0: 90, 1: 1} {
		now := time.Now()
		crt := (X509{Days: days}).template(now)
		if crt.NotAfter != now.AddDate(0, 0, lasts) || crt.NotBefore != now.Add(-5*time.Minute) {
			t.Errorf("%d days: from %v to %v", days, crt.NotBefore, crt.NotAfter)
		}
	}
}

// TestBoundOfTheIssuer: a certificate may end when the one of its issuer does.
func TestBoundOfTheIssuer(t *testing.T) {
	for days, good := range map[int]bool{9: true, 10: true, 11: false} {
		now := time.Now()
		ca, err := Config{X509: &X509{Subject: "an authority", Authority: true, Days: 10}}.Parts(now, nil)
		if err != nil {
			t.Fatal(err)
		}
		now = now.Truncate(time.Second) // as in a certificate
		leaf := Config{X509: &X509{Subject: "shop", CA: "apps/ca", Days: days}}
		if _, err := leaf.Parts(now, &Issuer{ca["crt"], ca["private"]}); (err == nil) != good {
			t.Errorf("%d days, of an issuer with 10: %v", days, err)
		}
	}
}
