// Package generate generates the parts of a new version of a secret.
package generate

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/secretsync/syncer/pkg/secret"
)

// Config says what to generate. Exactly one field is set. Package config reads all tags
// except json.
type Config struct {
	Random   int       `json:"random,omitempty" name:"random" min:"16" max:"1024" default:"0"`        // number of bytes, 16 to 1024; part "key"
	Password *Password `json:"password,omitempty" name:"password" without:"user"`                     // part "password"
	RSA      int       `json:"rsa,omitempty" name:"rsa" min:"2048" max:"4096" default:"0"`            // 2048, 3072 or 4096 bits; parts "private", "public"
	ECDSA    string    `json:"ecdsa,omitempty" name:"ecdsa" noun:"curve" allowed:"P-256 P-384 P-521"` // P-256, P-384 or P-521; the same parts
	Ed25519  bool      `json:"ed25519,omitempty" name:"ed25519"`                                      // the same parts
	SSH      bool      `json:"ssh,omitempty" name:"ssh"`                                              // Ed25519 in OpenSSH format; the same parts
	X509     *X509     `json:"x509,omitempty" name:"x509"`                                            // parts "crt" and "private"
	UUID     bool      `json:"uuid,omitempty" name:"uuid"`                                            // random; part "uuid"
	Htpasswd *Password `json:"htpasswd,omitempty" name:"htpasswd"`                                    // parts "password" and "htpasswd" (bcrypt)
}

// Password configures a password.
type Password struct {
	Length   int    `json:"length,omitempty" name:"length" min:"16" max:"256" follows:"32"`  // in characters, 16 to 256; 0: 32; bcrypt reads 72 bytes
	Alphabet string `json:"alphabet,omitempty" name:"alphabet" follows:"letters and digits"` // 10 different ASCII characters or more; "": alphanumeric
	User     string `json:"user,omitempty" name:"user" is:"required"`                        // for htpasswd
}

// Issuer is a certificate and its signing key, in PEM.
type Issuer struct{ Crt, Private secret.Value }

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Check returns the faults of a configuration.
func (c Config) Check() error {
	set := 0
	for _, is := range []bool{c.Random != 0, c.Password != nil, c.RSA != 0, c.ECDSA != "", c.Ed25519, c.SSH, c.X509 != nil, c.UUID, c.Htpasswd != nil} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return fmt.Errorf("generate names %d kinds; name one of random, password, rsa, ecdsa, ed25519, ssh, x509, uuid, htpasswd", set)
	case c.Random != 0 && (c.Random < 16 || c.Random > 1024):
		return fmt.Errorf("generate.random is %d; set 16 to 1024 bytes", c.Random)
	case c.RSA != 0 && c.RSA != 2048 && c.RSA != 3072 && c.RSA != 4096:
		return fmt.Errorf("generate.rsa is %d; set 2048, 3072 or 4096 bits", c.RSA)
	case c.ECDSA != "" && curves[c.ECDSA] == nil:
		return fmt.Errorf("generate.ecdsa is %q; set P-256, P-384 or P-521", c.ECDSA)
	case c.Password != nil:
		return c.Password.validate("password", 256)
	case c.Htpasswd != nil:
		return c.Htpasswd.checkHtpasswd()
	case c.X509 != nil:
		return c.X509.validate()
	}
	return nil
}

func (p Password) validate(kind string, most int) error {
	if p.Length != 0 && (p.Length < 16 || p.Length > most) {
		return fmt.Errorf("generate.%s.length is %d; set 16 to %d", kind, p.Length, most)
	}
	different := map[rune]bool{}
	for _, r := range p.Alphabet {
		if r <= ' ' || r > '~' {
			return fmt.Errorf("generate.%s.alphabet has a character that is not printable ASCII; take it out", kind)
		}
		different[r] = true
	}
	if p.Alphabet != "" && len(different) < 10 {
		return fmt.Errorf("generate.%s.alphabet has %d different characters; set at least 10", kind, len(different))
	}
	if len(different) != len(p.Alphabet) {
		return fmt.Errorf("generate.%s.alphabet has a character twice; take one out", kind)
	}
	return nil
}

func (p Password) checkHtpasswd() error {
	for _, r := range p.User {
		if r == ':' || r < ' ' || r == 0x7f {
			return errors.New("generate.htpasswd.user has a colon or a control character; take it out")
		}
	}
	if p.User == "" {
		return errors.New("generate.htpasswd has no user; set one")
	}
	return p.validate("htpasswd", 72)
}

// PartNames returns the names of the generated parts, in ascending order; none for the
// zero Config.
func (c Config) PartNames() []string {
	switch {
	case c == Config{}:
		return nil
	case c.Random != 0:
		return []string{"key"}
	case c.Password != nil:
		return []string{"password"}
	case c.Htpasswd != nil:
		return []string{"htpasswd", "password"}
	case c.UUID:
		return []string{"uuid"}
	case c.X509 != nil:
		return []string{"crt", "private"}
	}
	return []string{"private", "public"}
}

// Parts generates the parts of a new version. The issuer signs a certificate that
// is not self-signed.
func (c Config) Parts(now time.Time, issuer *Issuer) (map[string]secret.Value, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	switch {
	case c.Random != 0:
		key := make([]byte, c.Random)
		rand.Read(key)
		return one("key", key), nil
	case c.Password != nil:
		return one("password", c.Password.make()), nil
	case c.Htpasswd != nil:
		return c.Htpasswd.hashed()
	case c.UUID:
		return one("uuid", uuid()), nil
	case c.X509 != nil:
		return c.X509.parts(now, issuer)
	}
	return c.pair()
}

func one(name string, content []byte) map[string]secret.Value {
	return map[string]secret.Value{name: secret.New(content)}
}

func (p Password) make() []byte {
	from, length := p.Alphabet, p.Length
	if from == "" {
		from = alphabet
	}
	if length == 0 {
		length = 32
	}
	password := make([]byte, length)
	for i := range password {
		// Int fails only if the reader fails, and this reader panics instead.
		n, _ := rand.Int(rand.Reader, big.NewInt(int64(len(from))))
		password[i] = from[n.Int64()]
	}
	return password
}

func (p Password) hashed() (map[string]secret.Value, error) {
	password := p.make()
	hash, err := bcrypt.GenerateFromPassword(password, bcrypt.DefaultCost)
	if err != nil {
		return nil, fmt.Errorf("hashing the password: %w", err)
	}
	parts := one("password", password)
	parts["htpasswd"] = secret.New(append([]byte(p.User+":"), hash...))
	return parts, nil
}

// uuid generates a version 4 UUID (RFC 9562).
func uuid() []byte {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return []byte(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}
