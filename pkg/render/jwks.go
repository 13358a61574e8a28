package render

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// jwk is a JSON Web Key (RFC 7517, 7518 and 8037).
type jwk struct {
	Kty string `json:"kty"`
	Kid string `json:"kid"`
	Crv string `json:"crv,omitempty"`
	K   string `json:"k,omitempty"`
	N   string `json:"n,omitempty"`
	E   string `json:"e,omitempty"`
	X   string `json:"x,omitempty"`
	Y   string `json:"y,omitempty"`
	D   string `json:"d,omitempty"`
	P   string `json:"p,omitempty"`
	Q   string `json:"q,omitempty"`
	DP  string `json:"dp,omitempty"`
	DQ  string `json:"dq,omitempty"`
	QI  string `json:"qi,omitempty"`
}

// jwks renders the valid keys of sets as a JSON Web Key Set. Primary keys come
// first, because programs sign with the first key.
func jwks(entries []entry, public bool) (secret.Value, error) {
	first, others := []jwk{}, []jwk{}
	for _, e := range entries {
		for _, v := range e.set.Usable() {
			key, err := jwkOf(v, public)
			if err != nil {
				return secret.Value{}, fmt.Errorf("version %s of %q: %w", v.ID, brief.Input(e.alias), err)
			}
			if v.State == versions.Primary {
				first = append(first, key)
			} else {
				others = append(others, key)
			}
		}
	}
	content, err := json.Marshal(map[string][]jwk{"keys": append(first, others...)})
	if err != nil {
		return secret.Value{}, errors.New("the keys cannot be put into JSON")
	}
	return secret.New(content), nil
}

// jwkOf builds a key from a version's part key, private, public or crt.
func jwkOf(v versions.Version, public bool) (jwk, error) {
	if key, ok := v.Parts["key"]; ok {
		if public {
			return jwk{}, errors.New("its key is symmetric, so no part of it is public; use a pair, or format jwks")
		}
		return jwk{Kty: "oct", Kid: v.ID, K: base64url(key.Bytes())}, nil
	}
	for _, name := range []string{"private", "public", "crt"} {
		part, ok := v.Parts[name]
		if !ok || !public && name != "private" {
			continue
		}
		block, _ := pem.Decode(part.Bytes())
		if block == nil {
			return jwk{}, fmt.Errorf("its part %q is not in PEM", name)
		}
		defer clear(block.Bytes)
		key, err := parseKey(block)
		if err != nil {
			return jwk{}, fmt.Errorf("its part %q must be an RSA, ECDSA or Ed25519 key in PKCS #8 or PKIX", name)
		}
		return jwkOfKey(key, v.ID, public)
	}
	return jwk{}, errors.New("it has no part key or private")
}

func parseKey(block *pem.Block) (any, error) {
	switch block.Type {
	case "CERTIFICATE":
		crt, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return crt.PublicKey, nil
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	}
	return x509.ParsePKCS8PrivateKey(block.Bytes)
}

func jwkOfKey(key any, kid string, public bool) (jwk, error) {
	if signer, ok := key.(crypto.Signer); ok && public {
		key = signer.Public()
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		j, err := jwkOfKey(k.Public(), kid, true)
		if err != nil || len(k.Primes) != 2 {
			return jwk{}, errors.New("its key is not made of two primes")
		}
		k.Precompute()
		j.D, j.P, j.Q = number(k.D), number(k.Primes[0]), number(k.Primes[1])
		j.DP, j.DQ, j.QI = number(k.Precomputed.Dp), number(k.Precomputed.Dq), number(k.Precomputed.Qinv)
		return j, nil
	case *rsa.PublicKey:
		return jwk{Kty: "RSA", Kid: kid, N: number(k.N), E: number(big.NewInt(int64(k.E)))}, nil
	case *ecdsa.PrivateKey:
		j, err := jwkOfKey(k.Public(), kid, true)
		if err != nil {
			return jwk{}, err
		}
		d, err := k.Bytes()
		j.D = base64url(d)
		return j, err
	case *ecdsa.PublicKey:
		point, err := k.Bytes() // 4, then X and Y of equal length
		if err != nil {
			return jwk{}, errors.New("its key is on no named curve")
		}
		size := (len(point) - 1) / 2
		return jwk{Kty: "EC", Kid: kid, Crv: k.Params().Name, X: base64url(point[1 : 1+size]), Y: base64url(point[1+size:])}, nil
	case ed25519.PrivateKey:
		return jwk{Kty: "OKP", Kid: kid, Crv: "Ed25519", X: base64url(k.Public().(ed25519.PublicKey)), D: base64url(k.Seed())}, nil
	case ed25519.PublicKey:
		return jwk{Kty: "OKP", Kid: kid, Crv: "Ed25519", X: base64url(k)}, nil
	}
	return jwk{}, errors.New("its key must be RSA, ECDSA or Ed25519")
}

func number(n *big.Int) string { return base64url(n.Bytes()) }

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
