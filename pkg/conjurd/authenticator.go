package conjurd

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// authenticatorKind is the first part of the id of an authenticator's webservice,
// after "conjur/".
type authenticatorKind string

const (
	authnJWT   authenticatorKind = "authn-jwt"
	authnK8s   authenticatorKind = "authn-k8s"
	authnIAM   authenticatorKind = "authn-iam"
	authnAzure authenticatorKind = "authn-azure"
	authnGCP   authenticatorKind = "authn-gcp"
	authnCert  authenticatorKind = "authn-cert"
)

// settings lists the variables of each kind of authenticator, relative to the id of
// its webservice.
var settings = map[authenticatorKind][]string{
	authnJWT: {
		"public-keys", "jwks-uri", "provider-uri", "ca-cert", "issuer", "audience", "token-app-property", "identity-path",
		"enforced-claims", "claim-aliases",
	},
	authnK8s:   {"ca/cert", "ca/key"},
	authnIAM:   {"optional-signed-headers"},
	authnAzure: {"provider-uri"},
	authnGCP:   {},
	authnCert:  {"ca-cert", "host-mode", "trust-domain", "identity-path"},
}

// ours reports whether the genuine server lacks the kind, so that Strict disables it.
func (kind authenticatorKind) ours() bool { return kind == authnCert }

// authenticatorKinds returns the kinds that the server has, sorted.
func (s *Server) authenticatorKinds() []authenticatorKind {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(settings)), func(kind authenticatorKind) bool { return s.opt.Strict && kind.ours() })
}

// authenticator is one authenticator, configured by the variables below its
// webservice.
type authenticator struct {
	kind             authenticatorKind
	account, service string // service is empty for authn-gcp
	setting          map[string]string
}

// newAuthenticator returns the authenticator that the path names.
func newAuthenticator(kind authenticatorKind, c *call) *authenticator {
	return &authenticator{kind: kind, account: c.account(), service: c.vars["service"]}
}

func (a *authenticator) id() string { return "conjur/" + a.name() }

func (a *authenticator) name() string {
	if a.service == "" {
		return string(a.kind)
	}
	return string(a.kind) + "/" + a.service
}

func (a *authenticator) webservice() string {
	return string(policy.MakeRef(a.account, "webservice", a.id()))
}

// readSettings loads the settings from the store. A declared variable without a value is
// an error, because ignoring it could admit more hosts.
func (a *authenticator) readSettings(tx *store.Tx) error {
	switch o, err := tx.Object(a.webservice()); {
	case err != nil:
		return err
	case o == nil:
		return fmt.Errorf("CONJ00005E Webservice '%s' not found", a.name())
	case o.Disabled:
		return fmt.Errorf("CONJ00004E '%s' is not enabled", a.name())
	}
	a.setting = map[string]string{}
	for _, name := range settings[a.kind] {
		id := string(policy.MakeRef(a.account, "variable", a.id()+"/"+name))
		if !tx.Exists(id) {
			continue
		}
		value, version, err := tx.Value(id)
		if err != nil {
			return err
		}
		if version == 0 {
			return fmt.Errorf("CONJ00037E Missing value for resource: %s", id)
		}
		a.setting[name] = string(value)
	}
	return nil
}

// errNoPrivilege means that the role exists but may not use the authenticator.
var errNoPrivilege = errors.New("it may not use the authenticator")

// admit returns the host if it exists, may use the authenticator, and may log in
// from the caller's address.
func (a *authenticator) admit(tx *store.Tx, c *call, role string) (*store.Object, error) {
	o, err := tx.Object(role)
	if err != nil {
		return nil, err
	}
	web, err := tx.Object(a.webservice())
	if err != nil {
		return nil, err
	}
	if o == nil || web == nil {
		return nil, fmt.Errorf("%s does not exist", role)
	}
	if !tx.Allowed(tx.RolesOf(role), "authenticate", a.webservice(), web) {
		return nil, fmt.Errorf("%s: %w", role, errNoPrivilege)
	}
	cred, err := tx.Credentials(role)
	if err != nil {
		return nil, err
	}
	if !allowedFrom(cred, c) {
		return nil, fmt.Errorf("%s may not log in from this address", role)
	}
	return o, nil
}

// admit calls check with the host if the authenticator admits it. check examines
// the host's annotations.
func (s *Server) admit(c *call, a *authenticator, role string, check func(*store.Object) error) error {
	return s.view(c.ctx(), func(tx *store.Tx) error {
		o, err := a.admit(tx, c, role)
		if err != nil {
			return err
		}
		return check(o)
	})
}

// restrictions returns the restrictions in the host's annotations under the kind's
// prefix. Annotations for this service override those for all services. An unknown
// name is an error, because it may be misspelled.
func (a *authenticator) restrictions(o *store.Object, known ...string) (map[string]string, error) {
	all, own := map[string]string{}, map[string]string{}
	for _, an := range o.Annotations {
		name, ok := strings.CutPrefix(an.Name, string(a.kind)+"/")
		if !ok {
			continue
		}
		into := all
		if a.service != "" {
			if rest, ok := strings.CutPrefix(name, a.service+"/"); ok {
				name, into = rest, own
			}
		}
		if strings.Contains(name, "/") {
			continue // for another service
		}
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("the host's annotation %s is unknown", an.Name)
		}
		into[name] = an.Value
	}
	maps.Copy(all, own)
	return all, nil
}

// match returns an error that names the restriction that differs from the proven
// facts.
func match(asked, proven map[string]string) error {
	for name, want := range asked {
		if got, ok := proven[name]; !ok || got != want {
			return fmt.Errorf("%q is not what the host's annotation asks for", name)
		}
	}
	return nil
}

// decide ends a login. It answers with a token for the role, or with a refusal if
// err is not nil.
func (s *Server) decide(c *call, a *authenticator, role string, err error) reply {
	s.audit.decided(c, "authenticate"+strings.TrimPrefix(string(a.kind), "authn"), role, a.id(), err == nil)
	if err == nil {
		return s.grant(c, policy.Ref(role))
	}
	s.refused(c, role, err)
	switch {
	case errors.Is(err, errNoToken):
		return empty(http.StatusBadRequest)
	case errors.Is(err, errNoPrivilege):
		return empty(http.StatusForbidden)
	}
	return empty(http.StatusUnauthorized)
}

// errNoToken means that the request lacks the credential that its authenticator
// needs.
var errNoToken = errors.New("the request holds no credential")

// jwtOf returns the JWT from the request's form.
func jwtOf(c *call) (string, error) {
	body, err := c.body(maxCredential)
	if err != nil {
		return "", errNoToken
	}
	form, _ := url.ParseQuery(string(body)) // the Content-Type is ignored
	if token := form.Get("jwt"); token != "" {
		return token, nil
	}
	return "", errNoToken
}

// authenticatorsJSON lists the authenticators that the server supports, that a
// policy configures, and that are both configured and enabled.
type authenticatorsJSON struct {
	Installed  []string `json:"installed"`
	Configured []string `json:"configured"`
	Enabled    []string `json:"enabled"`
}

// listAuthenticators needs no token, because clients use it to choose how to log
// in.
func (s *Server) listAuthenticators(c *call) reply {
	list := authenticatorsJSON{Installed: []string{"authn"}, Configured: []string{"authn"}, Enabled: []string{"authn"}}
	kinds := s.authenticatorKinds()
	for _, kind := range kinds {
		list.Installed = append(list.Installed, string(kind))
	}
	err := s.view(c.ctx(), func(tx *store.Tx) error {
		for id, o := range tx.Objects(policy.Ref(s.admin()).Account() + ":webservice:conjur/authn-") {
			name := strings.TrimPrefix(policy.Ref(id).ID(), "conjur/")
			kind, service, _ := strings.Cut(name, "/")
			if !slices.Contains(kinds, authenticatorKind(kind)) || strings.Contains(service, "/") || (service == "") != (kind == string(authnGCP)) {
				continue // unknown, or the webservice for an authenticator's status
			}
			list.Configured = append(list.Configured, name)
			if !o.Disabled {
				list.Enabled = append(list.Enabled, name)
			}
		}
		return nil
	})
	if err != nil {
		return s.broken(c, err)
	}
	return jsonReply(http.StatusOK, list)
}

// enable enables or disables an authenticator of the kind. Authenticators are
// enabled by default.
func (kind authenticatorKind) enable(s *Server, c *call) reply {
	form, refused := c.form()
	if refused != nil {
		return *refused
	}
	a := newAuthenticator(kind, c)
	rep := empty(http.StatusNoContent)
	err := s.update(c.ctx(), func(tx *store.Tx) error {
		id := a.webservice()
		o, err := tx.Object(id)
		if err != nil {
			return err
		}
		if o == nil {
			rep = empty(http.StatusUnauthorized)
			return nil
		}
		allowed := tx.Allowed(tx.RolesOf(c.role), "update", id, o)
		s.audit.decided(c, "switch", c.role, id, allowed)
		if !allowed {
			rep = forbidden(c)
			return nil
		}
		o.Disabled = !strings.EqualFold(strings.TrimSpace(form.Get("enabled")), "true")
		return tx.PutObject(id, o)
	})
	if err != nil {
		return s.broken(c, err)
	}
	return rep
}
