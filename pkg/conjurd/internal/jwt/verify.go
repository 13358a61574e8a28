package jwt

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	jwtlib "github.com/golang-jwt/jwt/v5"
)

// Errors of Verify, for those who answer differently for them.
var (
	ErrExpired    = errors.New("the JWT has expired")
	ErrUnknownKey = errors.New("the JWT is signed with a key that is not in the key set")
)

// algorithms are those with public keys. What a JWT says of itself is not
// believed: "none" and the HMAC family are refused.
var algorithms = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
}

// Expectation is what a JWT must meet besides a good signature and its times.
type Expectation struct {
	Issuer   string // "" to accept any
	Audience string // "" to accept any
}

// Claims are a verified JWT's.
type Claims map[string]any

// Verify checks the JWT's signature, issuer, audience, expiry (which it must
// have) and nbf.
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

// Text returns the claim at a path such as "sub" or "kubernetes.io/namespace",
// whose slashes go into nested objects unless a name contains them. False
// when there is none or it is not a single value.
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

// lookUp prefers the longest name: claims of Kubernetes have slashes in them.
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
