package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/secretsync/syncer/internal/loopback"
)

// authenticator describes one method to log in to Conjur.
type authenticator struct {
	name    AuthnType
	service bool // a service id follows the name in its URL path
	// needs lists the required settings: one alternative of each item.
	needs [][]string
	// uses lists the optional settings that only some authenticators use.
	uses []string
	// shows is true if it presents a certificate, which requires https.
	shows bool
	doc   string // how it proves the identity; Markdown
}

// authenticators is the only table of the authenticators. Checks, documentation and
// schema use it.
func authenticators() []authenticator {
	return []authenticator{
		{name: AuthnAPIKey, needs: [][]string{{"conjur.login"}, {"conjur.apiKey", "conjur.apiKeyFile"}},
			doc: "an API key"},
		{name: AuthnJWT, service: true, uses: []string{"conjur.jwtTokenPath"},
			doc: "a token from a file, such as that of the Pod's service account"},
		{name: AuthnK8s, service: true, needs: [][]string{{"conjur.login"}, {"kubernetes.podName"}, {"kubernetes.namespace"}}, uses: []string{"conjur.clientCertPath", "conjur.clientCertWaitSeconds"}, shows: true,
			doc: "a certificate that Conjur writes into the container of the Pod"},
		{name: AuthnIAM, service: true, needs: [][]string{{"conjur.login"}},
			doc: "a signature by the AWS role of the Pod or the machine"},
		{name: AuthnAzure, service: true, needs: [][]string{{"conjur.login"}}, uses: []string{"conjur.azureClientId", "conjur.metadataUrl"},
			doc: "a token of the Azure managed identity of the machine"},
		{name: AuthnGCP, needs: [][]string{{"conjur.login"}}, uses: []string{"conjur.metadataUrl"},
			doc: "a token of the Google Cloud service account of the Pod or the machine"},
		{name: AuthnCert, service: true, needs: [][]string{{"conjur.clientCertFile"}, {"conjur.clientKeyFile"}}, shows: true,
			doc: "a client certificate from files"},
	}
}

// authenticatorNamed finds an authenticator, or returns false for a name that Syncer does
// not support.
func authenticatorNamed(name AuthnType) (authenticator, bool) {
	all := authenticators()
	i := slices.IndexFunc(all, func(a authenticator) bool { return a.name == name })
	if i < 0 {
		return authenticator{}, false
	}
	return all[i], true
}

// Proof says how the authenticator proves the identity; "" for one that Syncer does not
// support.
func (t AuthnType) Proof() string {
	a, _ := authenticatorNamed(t)
	return a.doc
}

// authenticatorNames lists the authenticators, for an error or a text.
func authenticatorNames() (names []string) {
	for _, a := range authenticators() {
		names = append(names, string(a.name))
	}
	return names
}

// settings returns all settings that the authenticator needs or uses.
func (a authenticator) settings() []string { return slices.Concat(slices.Concat(a.needs...), a.uses) }

// credentialSettings returns the settings that only some authenticators use, and no other
// part of Syncer.
func credentialSettings() (names []string) {
	for _, a := range authenticators() {
		names = append(names, a.settings()...)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		return name == "conjur.login" || name == "kubernetes.podName" || name == "kubernetes.namespace"
	})
}

// parseAuthnURL finds the authenticator and its service id in the path of a URL. Both
// must be whole path segments. An authenticator's name within a host or a proxy's folder
// does not count.
func parseAuthnURL(text string) (typ AuthnType, service string, err error) {
	u, err := parseURL(text)
	if err != nil {
		return "", "", err
	}
	segments := strings.Split(strings.Trim(u.Path, "/"), "/")
	i := slices.IndexFunc(segments, func(s string) bool { _, ok := authenticatorNamed(AuthnType(s)); return ok })
	if i < 0 {
		// Conjur may have it, but Syncer does not know it.
		i = slices.IndexFunc(segments, func(s string) bool { return strings.HasPrefix(s, "authn-") })
	}
	if i < 0 {
		return "", "", fmt.Errorf("no segment of the path of %q names an authenticator, such as authn-jwt/my-service", text)
	}
	typ = AuthnType(segments[i])
	service = strings.Join(segments[i+1:], "/")
	a, known := authenticatorNamed(typ)
	switch {
	case known && a.service && service == "":
		return typ, "", fmt.Errorf("the service id is missing after %s in %q", typ, text)
	case known && !a.service && service != "":
		return typ, service, fmt.Errorf("%s has no service id; remove what follows it in %q", typ, text)
	case known && a.shows && u.Scheme != "https":
		return typ, service, fmt.Errorf("%s sends a client certificate, which requires https://", typ)
	}
	return typ, service, nil
}

// parseURL accepts https, and http on a loopback address. Only a path may follow the
// host.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("not a URL") // the text might contain a password
	case u.User != nil:
		return nil, errors.New("a URL with a user or password in it; remove them")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, errors.New("a URL with a query or a fragment; remove it") // it might contain a token
	case strings.Contains(text, "@") && (u.Host == "" || u.Scheme != "https"):
		return nil, errors.New("not a URL that begins with https://") // it might contain a password
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%.200q is not a URL that begins with https://", text)
	case u.Scheme == "http" && !loopback.Is(u.Hostname()):
		return nil, fmt.Errorf("%.200q would send secrets in clear text; begin it with https://", text)
	}
	return u, nil
}
