package conjurd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/jwt"
	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// authenticateJWT gives an access token to the host that a JWT stands for.
func (s *Server) authenticateJWT(c *call) reply {
	body, err := c.body(maxCredential)
	if err != nil {
		return empty(http.StatusBadRequest)
	}
	form, _ := url.ParseQuery(string(body)) // whatever the Content-Type says
	token := form.Get("jwt")
	if token == "" {
		return empty(http.StatusBadRequest)
	}
	role, err := s.jwtRole(c, token)
	s.audit.decided(c, "authenticate-jwt", role, "conjur/authn-jwt/"+c.vars["service"], err == nil)
	switch {
	case errors.Is(err, jwt.ErrExpired):
		return faultReply(http.StatusUnauthorized, fault{Code: "unauthorized", Message: "CONJ00016E Token expired"})
	case err != nil:
		s.audit.explained(c, err)
		return empty(http.StatusUnauthorized)
	}
	return s.grant(c, policy.Ref(role))
}

// jwtRole finds the host, or why the JWT is not good for any.
func (s *Server) jwtRole(c *call, token string) (string, error) {
	a := authenticator{account: c.account(), service: c.vars["service"]}
	if err := s.view(c.ctx(), a.read); err != nil {
		return "", err
	}
	claims, err := s.verifyJWT(c.ctx(), &a, token)
	if err != nil {
		return "", err
	}
	role, err := a.identity(claims, c.vars["login"])
	if err != nil {
		return "", err
	}
	return role, s.view(c.ctx(), func(tx *store.Tx) error { return a.admit(tx, c, role, claims) })
}

// verifyJWT checks the JWT against the authenticator's keys. A key that is
// not in a fetched set may be newer than the set.
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
	keys, err := s.jwks.get(ctx, uri, a.setting["ca-cert"])
	if err != nil {
		return nil, err
	}
	claims, err := jwt.Verify(token, keys, want, s.now())
	if errors.Is(err, jwt.ErrUnknownKey) {
		if keys, err = s.jwks.renew(ctx, uri, a.setting["ca-cert"]); err != nil {
			return nil, err
		}
		return jwt.Verify(token, keys, want, s.now())
	}
	return claims, err
}

// settings are the variables of a JWT authenticator.
var settings = []string{
	"public-keys", "jwks-uri", "ca-cert", "issuer", "audience", "token-app-property", "identity-path",
	"enforced-claims", "claim-aliases",
}

// authenticator is a JWT authenticator as its policy sets it up.
type authenticator struct {
	account, service string
	setting          map[string]string
}

func (a *authenticator) id() string { return "conjur/authn-jwt/" + a.service }

// read takes the settings from the store. A declared variable without a value
// is a fault, since leaving it out may well let more hosts in.
func (a *authenticator) read(tx *store.Tx) error {
	switch o, err := tx.Object(a.webservice()); {
	case err != nil:
		return err
	case o == nil:
		return fmt.Errorf("there is no webservice %s", a.id())
	case o.Disabled:
		return fmt.Errorf("%s is switched off", a.id())
	}
	a.setting = map[string]string{}
	for _, name := range settings {
		id := string(policy.MakeRef(a.account, "variable", a.id()+"/"+name))
		if !tx.Exists(id) {
			continue
		}
		value, version, err := tx.Value(id)
		if err != nil {
			return err
		}
		if version == 0 {
			return fmt.Errorf("%s/%s has no value", a.id(), name)
		}
		a.setting[name] = string(value)
	}
	return nil
}

func (a *authenticator) webservice() string {
	return string(policy.MakeRef(a.account, "webservice", a.id()))
}

// identity is the host that the claims, or else the login in the path, name.
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

// admit checks that the role exists, may use the authenticator, and is who
// its annotations say: at least one claim is asked for, and all must match.
func (a *authenticator) admit(tx *store.Tx, c *call, role string, claims jwt.Claims) error {
	o, err := tx.Object(role)
	if err != nil {
		return err
	}
	web, err := tx.Object(a.webservice())
	if err != nil {
		return err
	}
	if o == nil || web == nil || !tx.Allowed(tx.RolesOf(role), "authenticate", a.webservice(), web) {
		return fmt.Errorf("%s does not exist or may not use %s", role, a.id())
	}
	cred, err := tx.Credentials(role)
	if err != nil {
		return err
	}
	if !allowedFrom(cred, c) {
		return fmt.Errorf("%s may not log in from this address", role)
	}
	return a.compare(o, claims)
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
