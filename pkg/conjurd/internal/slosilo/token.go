// Package slosilo issues and verifies access tokens in the genuine server's format:
// JSON of three base64url parts, signed with an RSA key of the account.
package slosilo

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"strings"
	"time"
)

// Errors of Parse and Verify.
var (
	ErrMalformed = errors.New("the token is not base64 of a token's JSON")
	ErrInvalid   = errors.New("the token is forged, expired or of another server")
	ErrClaims    = errors.New("the token has claims that are not known")
)

const (
	algorithm = "conjur.org/slosilo/v2"
	keyBits   = 2048
	saltSize  = 32
	// noExpiryLife is the validity of a token without an expiry.
	noExpiryLife = 8 * time.Minute
)

// Key signs an account's tokens.
type Key struct {
	rsa *rsa.PrivateKey
	id  string
}

// NewKey returns a Key that signs with k. If k is nil, it generates one.
func NewKey(k *rsa.PrivateKey) (*Key, error) {
	if k == nil {
		var err error
		if k, err = rsa.GenerateKey(rand.Reader, keyBits); err != nil {
			return nil, err
		}
	}
	return wrap(k), nil
}

// ParseKey parses the output of Marshal.
func ParseKey(der []byte) (*Key, error) {
	k, err := x509.ParsePKCS1PrivateKey(der)
	if err != nil {
		return nil, err
	}
	return wrap(k), nil
}

func wrap(k *rsa.PrivateKey) *Key {
	sum := sha256.Sum256(x509.MarshalPKCS1PublicKey(&k.PublicKey))
	return &Key{k, hex.EncodeToString(sum[:])}
}

// Marshal returns the private key as DER, for storage.
func (k *Key) Marshal() []byte { return x509.MarshalPKCS1PrivateKey(k.rsa) }

// ID is the public key's fingerprint, in hexadecimal.
func (k *Key) ID() string { return k.id }

// Claims are the content of a token.
type Claims struct {
	IssuedAt  int64    `json:"iat"` // seconds since 1970
	Subject   string   `json:"sub"` // login: "alice", "host/app"
	ExpiresAt int64    `json:"exp,omitempty"`
	CIDR      []string `json:"cidr,omitempty"`
}

// Token is a signed token in its wire format, before the outer base64.
type Token struct {
	Protected string `json:"protected"`
	Payload   string `json:"payload"`
	Signature string `json:"signature"`
}

type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
}

// Sign issues a token.
func (k *Key) Sign(c Claims) (*Token, error) {
	h, err := json.Marshal(header{algorithm, k.id})
	if err != nil {
		return nil, err
	}
	p, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	t := &Token{Protected: base64.URLEncoding.EncodeToString(h), Payload: base64.URLEncoding.EncodeToString(p)}
	return t, k.sign(t)
}

// sign adds the signature: of a salted digest, followed by the salt.
func (k *Key) sign(t *Token) error {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	sig, err := rsa.SignPKCS1v15(nil, k.rsa, crypto.Hash(0), t.digest(salt))
	if err != nil {
		return err
	}
	t.Signature = base64.URLEncoding.EncodeToString(append(sig, salt...))
	return nil
}

// digest returns the digest that the signature covers.
func (t *Token) digest(salt []byte) []byte {
	h := sha256.New()
	h.Write(salt)
	_, _ = io.WriteString(h, t.Protected+"."+t.Payload)
	return h.Sum(nil)
}

// Parse reads a token from the base64 in the Authorization header. It checks only
// the format.
func Parse(encoded string) (*Token, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return nil, ErrMalformed
	}
	var t Token
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, ErrMalformed
	}
	return &t, nil
}

// KeyID returns the id of the key that the token names as its signer.
func (t *Token) KeyID() (string, error) {
	raw, err := base64.URLEncoding.DecodeString(t.Protected)
	if err != nil {
		return "", ErrInvalid
	}
	var h header
	if err := json.Unmarshal(raw, &h); err != nil || h.Algorithm != algorithm {
		return "", ErrInvalid
	}
	return h.KeyID, nil
}

// Verify checks the signature and that the token is valid at now. It returns the
// token's claims. The caller must check the client's address.
func (k *Key) Verify(t *Token, now time.Time) (Claims, error) {
	c, err := k.open(t)
	if err != nil {
		return Claims{}, err
	}
	return c.At(now)
}

// open checks the signature and returns the claims that it covers.
func (k *Key) open(t *Token) (Claims, error) {
	sig, err := base64.URLEncoding.DecodeString(t.Signature)
	if err != nil || len(sig) != k.rsa.Size()+saltSize {
		return Claims{}, ErrInvalid
	}
	sig, salt := sig[:k.rsa.Size()], sig[k.rsa.Size():]
	if rsa.VerifyPKCS1v15(&k.rsa.PublicKey, crypto.Hash(0), t.digest(salt), sig) != nil {
		return Claims{}, ErrInvalid
	}
	payload, err := base64.URLEncoding.DecodeString(t.Payload)
	if err != nil {
		return Claims{}, ErrInvalid
	}
	var c Claims
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return Claims{}, ErrClaims
	}
	return c, nil
}

// At returns the claims, or ErrInvalid if they name nobody or are not valid at that time.
func (c Claims) At(now time.Time) (Claims, error) {
	if c.Subject == "" || !c.goodAt(now) {
		return Claims{}, ErrInvalid
	}
	return c, nil
}

// goodAt rejects expired tokens without tolerance. It accepts a token that was
// issued in the future.
func (c Claims) goodAt(now time.Time) bool {
	if c.ExpiresAt == 0 {
		return now.Before(time.Unix(c.IssuedAt, 0).Add(noExpiryLife))
	}
	return now.Before(time.Unix(c.ExpiresAt, 0))
}

// AllowsFrom reports whether the token may be used from the address.
func (c Claims) AllowsFrom(addr netip.Addr) bool { return len(c.CIDR) == 0 || InAny(addr, c.CIDR) }

// InAny reports whether the address is in one of the networks, which are CIDR
// ranges or single addresses.
func InAny(addr netip.Addr, networks []string) bool {
	addr = addr.Unmap()
	for _, n := range networks {
		if p, err := netip.ParsePrefix(n); err == nil && p.Contains(addr) {
			return true
		}
		if a, err := netip.ParseAddr(n); err == nil && a == addr {
			return true
		}
	}
	return false
}
