// Package jwt verifies the tokens that hosts present to a JWT authenticator.
package jwt

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
)

// Keys are RSA keys by their ids. No other type can verify an accepted algorithm.
type Keys map[string]*rsa.PublicKey

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

// jwk is a key of RFC 7517 with the members of RFC 7518 for RSA.
type jwk struct {
	KeyType string `json:"kty"`
	KeyID   string `json:"kid"`
	Use     string `json:"use"`
	N, E    string
}

// ParseJWKS reads an RFC 7517 key set. It ignores keys of other types than RSA. A set
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
		key, err := k.rsa()
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

func (k jwk) rsa() (*rsa.PublicKey, error) {
	if k.KeyType != "RSA" {
		return nil, fmt.Errorf("the key type is %q instead of \"RSA\"", k.KeyType)
	}
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
