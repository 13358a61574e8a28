// Package jwt verifies the tokens that hosts present to a JWT authenticator.
package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
)

// Keys are public keys by their ids.
type Keys map[string]crypto.PublicKey

// ParsePublicKeys reads the value of an authenticator's variable public-keys: a
// JWKS in an envelope that declares its type.
func ParsePublicKeys(text []byte) (Keys, error) {
	var envelope struct {
		Type  string          `json:"type"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return nil, fmt.Errorf("public-keys is not JSON of the form {\"type\":\"jwks\",\"value\":{...}}: %w", err)
	}
	if envelope.Type != "jwks" {
		return nil, fmt.Errorf("public-keys has type %q instead of \"jwks\"", envelope.Type)
	}
	return ParseJWKS(envelope.Value)
}

// jwk is a key of RFC 7517 with the members of RFC 7518 and RFC 8037.
type jwk struct {
	KeyType string `json:"kty"`
	KeyID   string `json:"kid"`
	Use     string `json:"use"`
	Curve   string `json:"crv"`
	N, E    string
	X, Y    string
}

// ParseJWKS reads an RFC 7517 key set. It ignores keys of unknown types. A set
// without any usable key is an error.
func ParseJWKS(text []byte) (Keys, error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("the key set is not a JWKS: %w", err)
	}
	keys := Keys{}
	var faults []error
	for i, k := range set.Keys {
		key, err := k.public()
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("key %d (%q): %w", i, k.KeyID, err))
		case k.Use != "enc":
			keys[k.KeyID] = key
		}
	}
	if len(keys) == 0 {
		return nil, errors.Join(append([]error{errors.New("the key set has no usable key")}, faults...)...)
	}
	return keys, nil
}

func (k jwk) public() (crypto.PublicKey, error) {
	switch k.KeyType {
	case "RSA":
		return k.rsa()
	case "EC":
		return k.ecdsa()
	case "OKP":
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if k.Curve != "Ed25519" || err != nil || len(x) != ed25519.PublicKeySize {
			return nil, errors.New("not an Ed25519 key")
		}
		return ed25519.PublicKey(x), nil
	}
	return nil, fmt.Errorf("unknown key type %q", k.KeyType)
}

func (k jwk) rsa() (crypto.PublicKey, error) {
	n, err1 := base64.RawURLEncoding.DecodeString(k.N)
	e, err2 := base64.RawURLEncoding.DecodeString(k.E)
	if err1 != nil || err2 != nil || len(n) < 128 || len(e) == 0 || len(e) > 4 {
		return nil, errors.New("not an RSA key of at least 1024 bits")
	}
	exp := 0
	for _, b := range e {
		exp = exp<<8 | int(b)
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: exp}, nil
}

func (k jwk) ecdsa() (crypto.PublicKey, error) {
	curves := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}
	curve := curves[k.Curve]
	x, err1 := base64.RawURLEncoding.DecodeString(k.X)
	y, err2 := base64.RawURLEncoding.DecodeString(k.Y)
	if curve == nil || err1 != nil || err2 != nil {
		return nil, fmt.Errorf("not a key on a known curve (%q)", k.Curve)
	}
	size := (curve.Params().BitSize + 7) / 8
	if len(x) != size || len(y) != size {
		return nil, errors.New("coordinates of the wrong length")
	}
	point := append(append([]byte{4}, x...), y...)
	return ecdsa.ParseUncompressedPublicKey(curve, point)
}
