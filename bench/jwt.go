package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// The processes authenticate with a service account token, as in a cluster.
const (
	jwtService = "bench"
	jwtIssuer  = "https://issuer.example"
	jwtKeyID   = "bench"
	jwtLife    = 24 * time.Hour // longer than any run
	jwtPrefix  = "conjur/authn-jwt/" + jwtService + "/"
)

// jwtPolicy permits the host to authenticate.
const jwtPolicy = `
- !policy
  id: conjur/authn-jwt/` + jwtService + `
  body:
  - !webservice
  - !variable public-keys
  - !variable issuer
  - !variable token-app-property
  - !variable identity-path
  - !group apps
  - !permit { role: !group apps, privileges: [read, authenticate], resource: !webservice }
- !grant { role: !group conjur/authn-jwt/` + jwtService + `/apps, member: !host ` + host + ` }
`

// allowJWT generates a key, makes the server trust it, and writes the host's token.
func (w *world) allowJWT(ctx context.Context) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	encode := base64.RawURLEncoding.EncodeToString
	keys, err := json.Marshal(map[string]any{"type": "jwks", "value": map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": jwtKeyID,
		"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
	}}}})
	if err != nil {
		return err
	}
	err = w.server.SetMany(ctx, map[string][]byte{
		jwtPrefix + "public-keys": keys, jwtPrefix + "issuer": []byte(jwtIssuer),
		jwtPrefix + "token-app-property": []byte("sub"), jwtPrefix + "identity-path": []byte(policyPath),
	})
	if err != nil {
		return err
	}
	now := time.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"iss": jwtIssuer, "sub": "web", "aud": "conjur",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(jwtLife).Unix(),
	})
	token.Header["kid"] = jwtKeyID
	text, err := token.SignedString(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.MkdirAll(w.path(), 0o755),
		os.WriteFile(w.path(jwtFile), []byte(text), 0o644),
	)
}

// jwtFile is the token's file name below the Pod's /conjur.
const jwtFile = "token"

func (w *world) authnURL() string { return w.served.URL + "/authn-jwt/" + jwtService }
