package conjurdtest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"time"

	jwtlib "github.com/golang-jwt/jwt/v5"
)

// issuer signs JWTs for a test server.
type issuer struct {
	once sync.Once
	key  *rsa.PrivateKey
}

const (
	// Issuer is the "iss" of MintJWT's tokens.
	Issuer = "https://issuer.test"
	keyID  = "test"
)

func (s *Server) signer() *rsa.PrivateKey {
	s.jwt.once.Do(func() {
		var err error
		s.jwt.key, err = rsa.GenerateKey(rand.Reader, 2048)
		s.check(err)
	})
	return s.jwt.key
}

// EnableJWT configures the authenticator authn-jwt/service and permits the hosts to
// use it. Its tokens name their host by "sub", relative to identityPath. EnableJWT
// creates each host by its id below identityPath, with an annotation for "sub".
func (s *Server) EnableJWT(service, identityPath string, hosts ...string) {
	s.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "- !policy\n  id: %q\n  body:\n", identityPath)
	all := make([]string, len(hosts))
	for i, h := range hosts {
		fmt.Fprintf(&b, "  - !host { id: %q, annotations: { %q: %q } }\n", h, "authn-jwt/"+service+"/sub", h)
		all[i] = identityPath + "/" + h
	}
	s.Policy(b.String())
	s.Enable("authn-jwt/"+service, map[string]string{
		"public-keys": s.PublicKeys(), "issuer": Issuer, "token-app-property": "sub", "identity-path": identityPath,
	}, all...)
}

// Enable configures an authenticator, such as authn-iam/prod, with the values of
// its variables, and permits hosts to use it.
func (s *Server) Enable(authenticator string, variables map[string]string, hosts ...string) {
	s.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "- !policy\n  id: conjur/%s\n  body:\n  - !webservice\n  - !group apps\n"+
		"  - !permit { role: !group apps, privileges: [read, authenticate], resource: !webservice }\n", authenticator)
	for name := range variables {
		fmt.Fprintf(&b, "  - !variable %s\n", name)
	}
	for _, h := range hosts {
		fmt.Fprintf(&b, "- !grant { role: !group conjur/%s/apps, member: !host %q }\n", authenticator, h)
	}
	s.Policy(b.String())
	for name, value := range variables {
		s.Set("conjur/"+authenticator+"/"+name, value)
	}
}

// PublicKeys returns the value of the variable public-keys for MintJWT's tokens.
func (s *Server) PublicKeys() string {
	pub := s.signer().PublicKey
	enc := base64.RawURLEncoding.EncodeToString
	text, err := json.Marshal(map[string]any{"type": "jwks", "value": map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": keyID,
		"n": enc(pub.N.Bytes()), "e": enc(big.NewInt(int64(pub.E)).Bytes()),
	}}}})
	s.check(err)
	return string(text)
}

// MintJWT returns a token for sub that is valid for life, by the wall clock. A
// negative life yields an expired token. Further claims may add to the default ones
// or replace them.
func (s *Server) MintJWT(sub string, life time.Duration, more map[string]any) string {
	s.t.Helper()
	now := time.Now()
	claims := jwtlib.MapClaims{
		"iss": Issuer, "sub": sub, "aud": "conjur",
		"iat": now.Unix(), "nbf": now.Add(min(0, life)).Unix(), "exp": now.Add(life).Unix(),
	}
	for k, v := range more {
		claims[k] = v
	}
	token := jwtlib.NewWithClaims(jwtlib.SigningMethodRS256, claims)
	token.Header["kid"] = keyID
	signed, err := token.SignedString(s.signer())
	s.check(err)
	return signed
}
