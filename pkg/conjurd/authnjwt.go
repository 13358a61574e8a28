package conjurd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/jwt"
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
	if errors.Is(err, jwt.ErrExpired) {
		return faultReply(http.StatusUnauthorized, fault{Code: "unauthorized", Message: "CONJ00016E Token expired"})
	}
	return rep
}

// jwtRole returns the host, or the reason why the JWT identifies none.
func (s *Server) jwtRole(c *call, a *authenticator, token string) (string, error) {
	if err := s.view(c.ctx(), a.readSettings); err != nil {
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
	if err := a.checkKeySettings(); err != nil {
		return nil, err
	}
	want, err := a.expectation()
	if err != nil {
		return nil, err
	}
	if uri := a.keysURI(); uri != "" {
		return s.verifyFetched(ctx, token, uri, a.setting["ca-cert"], want)
	}
	keys, err := jwt.ParsePublicKeys([]byte(a.setting["public-keys"]))
	if err != nil {
		return nil, err
	}
	return jwt.Verify(token, keys, want, s.now())
}

// keysURI returns the URI of the key set or of the discovery document, or "" if the
// keys are in public-keys.
func (a *authenticator) keysURI() string {
	if provider := a.setting["provider-uri"]; provider != "" {
		return strings.TrimRight(provider, "/") + discovery
	}
	return a.setting["jwks-uri"]
}

// checkKeySettings returns an error if not exactly one variable tells where the keys are.
func (a *authenticator) checkKeySettings() error {
	var sources []string
	for _, name := range []string{"jwks-uri", "public-keys", "provider-uri"} {
		if a.setting[name] != "" {
			sources = append(sources, name)
		}
	}
	const code = "CONJ00122E Invalid signing key settings: "
	static := a.setting["public-keys"] != ""
	switch {
	case len(sources) == 0:
		return errors.New(code + "One of the following must be defined: jwks-uri, public-keys, or provider-uri")
	case len(sources) == 3:
		return errors.New(code + "jwks-uri, public-keys, and provider-uri cannot be defined simultaneously")
	case len(sources) == 2:
		return fmt.Errorf(code+"%s cannot be defined simultaneously", strings.Join(sources, " and "))
	case static && a.setting["ca-cert"] != "":
		return errors.New(code + "ca-cert can only be defined together with jwks-uri or provider-uri")
	case static && a.setting["issuer"] == "":
		return errors.New(code + "issuer is mandatory when public-keys is defined")
	}
	return nil
}

// expectation returns what the JWTs must satisfy. Without the variable issuer, it is
// the provider-uri, or the host name in jwks-uri.
func (a *authenticator) expectation() (want jwt.Expectation, err error) {
	want = jwt.Expectation{Issuer: a.setting["issuer"], Audience: a.setting["audience"]}
	if want.Issuer == "" {
		want.Issuer = a.setting["provider-uri"]
	}
	if want.Issuer == "" {
		uri, err := url.Parse(a.setting["jwks-uri"])
		if err != nil || uri.Hostname() == "" {
			return want, errors.New("CONJ00079E Failed to extract hostname from URI in jwks-uri")
		}
		want.Issuer = uri.Hostname()
	}
	return want, nil
}

// validateJWT checks the settings for the status route, and fetches the keys.
func (s *Server) validateJWT(ctx context.Context, a *authenticator) error {
	if err := a.checkKeySettings(); err != nil {
		return err
	}
	if uri := a.keysURI(); uri == "" {
		if _, err := jwt.ParsePublicKeys([]byte(a.setting["public-keys"])); err != nil {
			return fmt.Errorf("CONJ00120E Failed to parse 'public-keys': %w", err)
		}
	} else if _, err := s.jwks.get(ctx, uri, a.setting["ca-cert"]); err != nil {
		return fmt.Errorf("CONJ00087E Failed to fetch JWKS from '%s'. Reason: '%w'", redacted(uri), err)
	}
	if _, err := a.expectation(); err != nil {
		return err
	}
	if _, err := a.enforcedClaims(); err != nil {
		return err
	}
	if _, err := a.aliases(); err != nil {
		return err
	}
	property, byClaim := a.setting["token-app-property"]
	if byClaim && !jwt.IsClaimPath(property) {
		return fmt.Errorf("CONJ00117E Failed to parse 'token-app-property' value. Error: '%q is not the path of a claim'", property)
	}
	return nil
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
	login = "host/" + strings.Trim(a.setting["identity-path"], "/")
	if !strings.HasPrefix(id, "/") {
		login = strings.TrimRight(login, "/") + "/"
	}
	return roleOf(a.account, login+id), nil
}

// compare checks the host's annotations, and compares them with the claims.
func (a *authenticator) compare(o *store.Object, claims jwt.Claims) error {
	aliases, err := a.aliases()
	if err != nil {
		return err
	}
	enforced, err := a.enforcedClaims()
	if err != nil {
		return err
	}
	asked := map[string]string{}
	for _, an := range o.Annotations {
		if name, ok := strings.CutPrefix(an.Name, "authn-jwt/"+a.service+"/"); ok {
			if !jwt.IsClaimPath(name) {
				return fmt.Errorf("CONJ00119E Restriction '%s' is invalid and not representing claim path in the token", name)
			}
			asked[name] = an.Value
		}
	}
	if len(asked) == 0 {
		return errors.New("CONJ00099E Role must have at least one relevant annotation")
	}
	aliasOf := map[string]string{}
	for alias, claim := range aliases {
		aliasOf[claim] = alias
	}
	for _, claim := range enforced {
		name := cmp.Or(aliasOf[claim], claim)
		if _, ok := asked[name]; !ok {
			return fmt.Errorf("CONJ00057E Role does not have the required constraints: '%s'", name)
		}
	}
	for name := range asked {
		if aliasOf[name] != "" || slices.Contains(registeredClaims, name) {
			return fmt.Errorf("CONJ00069E Role cannot have a registered or aliased claim. Error: '%s'", name)
		}
	}
	for name, want := range asked {
		claim := cmp.Or(aliases[name], name)
		got, ok := claims.Text(claim)
		switch {
		case strings.TrimSpace(want) == "":
			return fmt.Errorf("CONJ00100E Annotation, '%s', is empty", name)
		case !ok:
			return fmt.Errorf("CONJ00084E Claim '%s' is missing from JWT token, or is not a text", claim)
		case got != want:
			return fmt.Errorf("CONJ00049E Resource restriction '%s' does not match with the corresponding value in the request", name)
		}
	}
	return nil
}

// registeredClaims lists those that no annotation, alias or enforced claim may name.
var registeredClaims = []string{"iss", "exp", "nbf", "iat", "jti", "aud"}

func checkClaimName(name string) error {
	switch {
	case name == "":
		return errors.New("CONJ00103E Failed to validate claim: claim name is empty or was not found")
	case !jwt.IsClaimPath(name):
		return fmt.Errorf("CONJ00104E Failed to validate claim: claim name '%s' does not match regular expression: '%s'", name, jwt.ClaimPath)
	case slices.Contains(registeredClaims, name):
		return fmt.Errorf("CONJ00105E Failed to validate claim: claim name '%s' is in denylist", name)
	}
	return nil
}

// enforcedClaims reads "claim, ...". It returns nil if the variable is not declared.
func (a *authenticator) enforcedClaims() ([]string, error) {
	text, declared := a.setting["enforced-claims"]
	if !declared {
		return nil, nil
	}
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
		switch {
		case list[i] == "":
			return nil, fmt.Errorf("CONJ00107E List of enforced claims '%s' is in invalid format", text)
		case slices.Contains(list[:i], list[i]):
			return nil, fmt.Errorf("CONJ00108E List of enforced claims '%s' must not contain duplications", text)
		}
		if err := checkClaimName(list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// aliases reads "alias: claim, ...". It returns nil if the variable is not declared.
func (a *authenticator) aliases() (map[string]string, error) {
	text, declared := a.setting["claim-aliases"]
	if !declared {
		return nil, nil
	}
	const failed = "Failed to parse claim aliases: "
	aliases, claims := map[string]string{}, map[string]bool{}
	for pair := range strings.SplitSeq(text, ",") {
		pair = strings.TrimSpace(pair)
		alias, claim, ok := strings.Cut(pair, ":")
		alias, claim = strings.TrimSpace(alias), strings.TrimSpace(claim)
		switch {
		case pair == "":
			return nil, errors.New("CONJ00110E " + failed + "one or more mapping statements are blank or empty")
		case !ok || alias == "" || claim == "" || strings.Contains(claim, ":"):
			return nil, fmt.Errorf("CONJ00111E "+failed+"the claim alias value '%s' is in invalid format", pair)
		case strings.Contains(alias, "/"):
			return nil, errors.New("CONJ00114E " + failed + "the claim alias name '" + alias + "' contains '/'.")
		}
		for _, name := range []string{alias, claim} {
			if err := checkClaimName(name); err != nil {
				return nil, fmt.Errorf("CONJ00112E "+failed+"one of the claims in the claim alias value '%s' is invalid: %w", pair, err)
			}
		}
		if aliases[alias] != "" || claims[claim] {
			return nil, fmt.Errorf("CONJ00113E "+failed+"'%s' or '%s' appears more than once", alias, claim)
		}
		aliases[alias], claims[claim] = claim, true
	}
	return aliases, nil
}
