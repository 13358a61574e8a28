package jwt

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	jwtlib "github.com/golang-jwt/jwt/v5"
)

// Errors of Verify that callers may answer differently.
var (
	ErrExpired    = errors.New("the JWT has expired")
	ErrUnknownKey = errors.New("the JWT is signed with a key that is not in the key set")
)

// algorithms lists the accepted algorithms, all with public keys. The header of a
// JWT cannot select another one, such as "none" or one of the HMAC family.
var algorithms = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
}

// Expectation lists what a JWT must satisfy, besides its signature and its times.
type Expectation struct {
	Issuer   string // "" to accept any
	Audience string // "" to accept any
}

// Claims are the claims of a verified JWT.
type Claims map[string]any

// Verify checks the JWT's signature, issuer, audience, nbf and expiry. The expiry
// is required.
func Verify(token string, keys Keys, want Expectation, now time.Time) (Claims, error) {
	opts := []jwtlib.ParserOption{
		jwtlib.WithValidMethods(algorithms),
		jwtlib.WithExpirationRequired(),
		jwtlib.WithTimeFunc(func() time.Time { return now }),
		jwtlib.WithJSONNumber(),
	}
	if want.Issuer != "" {
		opts = append(opts, jwtlib.WithIssuer(want.Issuer))
	}
	if want.Audience != "" {
		opts = append(opts, jwtlib.WithAudience(want.Audience))
	}
	claims := jwtlib.MapClaims{}
	_, err := jwtlib.NewParser(opts...).ParseWithClaims(token, claims, func(t *jwtlib.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		key, ok := keys[kid]
		if !ok || kid == "" {
			return nil, ErrUnknownKey
		}
		return key, nil
	})
	switch {
	case errors.Is(err, jwtlib.ErrTokenExpired):
		return nil, ErrExpired
	case errors.Is(err, ErrUnknownKey):
		return nil, ErrUnknownKey
	case err != nil:
		return nil, err
	}
	return Claims(claims), nil
}

// Text returns the claim at a path such as "sub" or "kubernetes.io/namespace". A
// slash selects a member of a nested object, unless the name itself contains it.
// Text returns false if there is no such claim or if it is not a single value.
func (c Claims) Text(path string) (string, bool) {
	v, ok := lookUp(c, path)
	if !ok {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		if v {
			return "true", true
		}
		return "false", true
	}
	return "", false
}

// lookUp prefers the longest name, because names of Kubernetes claims contain
// slashes.
func lookUp(m map[string]any, path string) (any, bool) {
	if v, ok := m[path]; ok {
		return v, true
	}
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		inner, ok := m[path[:i]].(map[string]any)
		if !ok {
			continue
		}
		if v, ok := lookUp(inner, path[i+1:]); ok {
			return v, true
		}
	}
	return nil, false
}
