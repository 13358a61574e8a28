package conjurd

import (
	"net/http"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

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
