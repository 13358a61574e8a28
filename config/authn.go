package config

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// authnNeeds is what an authenticator cannot do without.
type authnNeeds struct {
	service  bool     // a service id in its address
	settings []string // names
}

// authenticators lists those of Conjur.
func authenticators() map[AuthnType]authnNeeds {
	return map[AuthnType]authnNeeds{
		AuthnAPIKey:   {settings: []string{nameLogin, nameAPIKey}},
		AuthnJWT:      {service: true},
		"authn-k8s":   {service: true, settings: []string{nameLogin, namePodName, nameNamespace}},
		"authn-iam":   {service: true, settings: []string{nameLogin}},
		"authn-azure": {service: true, settings: []string{nameLogin}},
		"authn-gcp":   {settings: []string{nameLogin}},
		"authn-cert":  {service: true},
		"authn-oidc":  {service: true},
		"authn-ldap":  {service: true, settings: []string{nameLogin}},
	}
}

// parseAuthnURL finds the authenticator and its service id in the path of its
// address. They are whole segments: a host or a proxy's folder that happens
// to contain an authenticator's name means nothing.
func parseAuthnURL(text string) (typ AuthnType, service string, err error) {
	u, err := parseURL(text)
	if err != nil {
		return "", "", err
	}
	known := authenticators()
	segments := strings.Split(strings.Trim(u.Path, "/"), "/")
	i := slices.IndexFunc(segments, func(s string) bool { _, ok := known[AuthnType(s)]; return ok })
	if i < 0 {
		// One that Conjur may have and Syncer does not know.
		i = slices.IndexFunc(segments, func(s string) bool { return strings.HasPrefix(s, "authn-") })
	}
	if i < 0 {
		return "", "", fmt.Errorf("no segment of the path of %q names an authenticator, such as authn-jwt/my-service", text)
	}
	typ = AuthnType(segments[i])
	service = strings.Join(segments[i+1:], "/")
	if service == "" && known[typ].service {
		return typ, "", fmt.Errorf("the service id is missing after %s in %q", typ, text)
	}
	return typ, service, nil
}

// parseURL accepts https, and http on a loopback address, without anything
// after the path.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("not a URL") // the text might hold a password
	case u.User != nil:
		return nil, errors.New("a URL with a user or password in it; remove them")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, errors.New("a URL with a query or a fragment; remove it") // which might hold a token
	case strings.Contains(text, "@") && (u.Host == "" || u.Scheme != "https"):
		return nil, errors.New("not a URL that begins with https://") // what is before the @ might be a password
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%.200q is not a URL that begins with https://", text)
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return nil, fmt.Errorf("%.200q would send secrets in clear text; begin it with https://", text)
	}
	return u, nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}
