package jwt

import (
	"errors"
	"regexp"
	"strings"
	"time"

	jwtlib "github.com/golang-jwt/jwt/v5"
)

// Errors of Verify that callers may answer differently.
var (
	ErrExpired    = errors.New("the JWT has expired")
	ErrUnknownKey = errors.New("the JWT is signed with a key that is not in the key set")
)

// algorithms lists those that the genuine server accepts for authn-jwt. The header of a
// JWT cannot select another one, such as "none" or one of the HMAC family.
var algorithms = []string{"RS256", "RS384", "RS512"}

// Expectation lists what a JWT must satisfy, besides its signature and its times.
type Expectation struct {
	Issuer   string // "" to accept any
	Audience string // "" to accept any
}

// Claims are the claims of a verified JWT.
type Claims map[string]any

// Verify checks the JWT's signature, issuer, audience, iat, nbf and expiry. The expiry
// is required.
func Verify(token string, keys Keys, want Expectation, now time.Time) (Claims, error) {
	opts := []jwtlib.ParserOption{
		jwtlib.WithValidMethods(algorithms),
		jwtlib.WithExpirationRequired(),
		jwtlib.WithIssuedAt(), // not in the future, if it is present
		jwtlib.WithTimeFunc(func() time.Time { return now }),
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

// ClaimPath is the regular expression of names of claims. A slash selects a member of
// a nested object.
const ClaimPath = `^[a-zA-Z|$|_][a-zA-Z|$|_|\-|0-9|.]*(/[a-zA-Z|$|_][a-zA-Z|$|_|\-|0-9|.]*)*$`

var claimPath = regexp.MustCompile(ClaimPath)

// IsClaimPath reports whether the name has the form ClaimPath.
func IsClaimPath(name string) bool { return claimPath.MatchString(name) }

// Text returns the claim at a path such as "sub" or "kubernetes.io/namespace". A
// top-level claim whose name is the whole path takes precedence. Text returns false if
// there is no such claim or if it is not a text.
func (c Claims) Text(path string) (string, bool) {
	var v any = map[string]any(c)
	if whole := c[path]; whole != nil {
		v = whole
	} else if IsClaimPath(path) {
		for name := range strings.SplitSeq(path, "/") {
			object, _ := v.(map[string]any)
			v = object[name]
		}
	}
	text, ok := v.(string)
	return text, ok
}
