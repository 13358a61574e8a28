package conjurd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/jwt"
	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// authenticateJWT returns an access token for the host that a JWT identifies.
func (s *Server) authenticateJWT(c *call) reply {
	a := newAuthenticator(authnJWT, c)
	token, err := jwtOf(c)
	role := ""
	if err == nil {
		role, err = s.jwtRole(c, a, token)
	}
	rep := s.decide(c, a, role, err)
	switch {
	case errors.Is(err, jwt.ErrExpired):
		return faultReply(http.StatusUnauthorized, fault{Code: "unauthorized", Message: "CONJ00016E Token expired"})
	case errors.Is(err, errNoPrivilege):
		return empty(http.StatusUnauthorized) // all other authenticators answer differently
	}
	return rep
}

// jwtRole returns the host, or the reason why the JWT identifies none.
func (s *Server) jwtRole(c *call, a *authenticator, token string) (string, error) {
	if err := s.view(c.ctx(), a.read); err != nil {
		return "", err
	}
	claims, err := s.verifyJWT(c.ctx(), a, token)
	if err != nil {
		return "", err
	}
	role, err := a.identity(claims, c.vars["login"])
	if err != nil {
		return "", err
	}
	return role, s.admit(c, a, role, func(o *store.Object) error { return a.compare(o, claims) })
}

// verifyJWT checks the JWT against the authenticator's keys.
func (s *Server) verifyJWT(ctx context.Context, a *authenticator, token string) (jwt.Claims, error) {
	want := jwt.Expectation{Issuer: a.setting["issuer"], Audience: a.setting["audience"]}
	uri := a.setting["jwks-uri"]
	switch {
	case uri != "" && a.setting["public-keys"] != "":
		return nil, errors.New("both jwks-uri and public-keys are set")
	case uri == "":
		if want.Issuer == "" {
			return nil, errors.New("public-keys needs issuer")
		}
		keys, err := jwt.ParsePublicKeys([]byte(a.setting["public-keys"]))
		if err != nil {
			return nil, err
		}
		return jwt.Verify(token, keys, want, s.now())
	}
	return s.verifyFetched(ctx, token, uri, a.setting["ca-cert"], want)
}

// verifyFetched checks a JWT against the keys behind a URI. It fetches the keys
// again if the JWT's key is missing, because that key may be newer than the stored
// set.
func (s *Server) verifyFetched(ctx context.Context, token, uri, ca string, want jwt.Expectation) (jwt.Claims, error) {
	keys, err := s.jwks.get(ctx, uri, ca)
	if err != nil {
		return nil, err
	}
	claims, err := jwt.Verify(token, keys, want, s.now())
	if errors.Is(err, jwt.ErrUnknownKey) {
		if keys, err = s.jwks.renew(ctx, uri, ca); err != nil {
			return nil, err
		}
		return jwt.Verify(token, keys, want, s.now())
	}
	return claims, err
}

// identity returns the host that the claims name, or else the login in the path.
func (a *authenticator) identity(claims jwt.Claims, login string) (string, error) {
	property, byClaim := a.setting["token-app-property"]
	if byClaim == (login != "") {
		return "", errors.New("the host is named both or neither by the path and token-app-property")
	}
	if !byClaim {
		return roleOf(a.account, login), nil
	}
	id, ok := claims.Text(property)
	if !ok || id == "" {
		return "", fmt.Errorf("the JWT has no claim %q", property)
	}
	if path := strings.Trim(a.setting["identity-path"], "/"); path != "" {
		id = path + "/" + id
	}
	return string(policy.MakeRef(a.account, "host", id)), nil
}

func (a *authenticator) compare(o *store.Object, claims jwt.Claims) error {
	start := "authn-jwt/" + a.service + "/"
	aliases := a.aliases()
	asked := map[string]bool{}
	for _, an := range o.Annotations {
		claim, ok := strings.CutPrefix(an.Name, start)
		if !ok {
			continue
		}
		asked[claim] = true
		if real, ok := aliases[claim]; ok {
			claim = real
		}
		if got, ok := claims.Text(claim); !ok || got != an.Value {
			return fmt.Errorf("claim %q is not what the host's annotation asks for", claim)
		}
	}
	if len(asked) == 0 {
		return fmt.Errorf("the host has no annotation %s<claim>", start)
	}
	for _, claim := range commaList(a.setting["enforced-claims"]) {
		if !asked[claim] {
			return fmt.Errorf("the host has no annotation for the enforced claim %q", claim)
		}
	}
	return nil
}

// aliases reads "alias: claim, ...".
func (a *authenticator) aliases() map[string]string {
	out := map[string]string{}
	for _, pair := range commaList(a.setting["claim-aliases"]) {
		if alias, claim, ok := strings.Cut(pair, ":"); ok {
			out[strings.TrimSpace(alias)] = strings.TrimSpace(claim)
		}
	}
	return out
}

func commaList(s string) []string {
	var out []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}
