package conjurd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// version is the version of the genuine server that this server imitates.
const version = "1.24.0-0"

// status answers with the front page: JSON for programs, HTML for browsers. Older
// clients search the page for the version.
func (s *Server) status(c *call) reply {
	accept := c.r.Header.Get("Accept")
	if accept == "" || strings.Contains(accept, "html") && !strings.Contains(accept, "json") {
		return reply{status: http.StatusOK, kind: typeNoPath, body: fmt.Appendf(nil,
			"<!DOCTYPE html><title>conjurd</title><p>A Conjur-compatible server is running.<dl><dd>Version %s</dd></dl>\n", version)}
	}
	return jsonReply(http.StatusOK, map[string]string{"version": version})
}

// health reports whether the data is readable, in the format of Conjur Enterprise.
func (s *Server) health(c *call) reply {
	err := s.view(c.ctx(), func(tx *store.Tx) error {
		if tx.Exists(s.admin()) {
			return nil
		}
		return errors.New("the account is gone")
	})
	status, ok := http.StatusOK, err == nil
	if !ok {
		status = http.StatusServiceUnavailable
	}
	part := map[string]bool{"ok": ok}
	return jsonReply(status, map[string]any{"ok": ok, "database": part, "services": part})
}

// status reports whether an authenticator of the kind is configured correctly. The
// policy must declare a webservice with its name, which the caller may read.
func (kind authenticatorKind) status(s *Server, c *call) reply {
	if kind == authnIAM {
		return statusFault(http.StatusNotImplemented, "CONJ00056E Status check not supported for authenticator 'authn-iam'")
	}
	a := newAuthenticator(kind, c)
	id := a.webservice() + "/status"
	rep := s.snapshot(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		o, err := tx.Object(id)
		switch {
		case err != nil:
			return reply{}, err
		case o == nil:
			return webserviceNotFound(a.name() + "/status"), nil
		case !tx.Allowed(roles, "read", id, o):
			return statusFault(http.StatusForbidden, fmt.Sprintf("CONJ00006E '%s' does not have 'read' privilege on %s", loginOf(policy.Ref(c.role)), id)), nil
		case !tx.Exists(a.webservice()):
			return webserviceNotFound(a.name()), nil
		}
		if err := a.readSettings(tx); err != nil {
			return statusFault(http.StatusInternalServerError, err.Error()), nil
		}
		return jsonReply(http.StatusOK, map[string]string{"status": "ok"}), nil
	})
	if rep.status != http.StatusOK {
		return rep
	}
	if err := s.validate(c.ctx(), a); err != nil {
		return statusFault(http.StatusInternalServerError, err.Error())
	}
	return rep
}

// validate checks the settings of an authenticator, and that its keys can be fetched.
func (s *Server) validate(ctx context.Context, a *authenticator) error {
	var issuer string
	switch a.kind {
	case authnJWT:
		return s.validateJWT(ctx, a)
	case authnAzure:
		if issuer = strings.TrimRight(a.setting["provider-uri"], "/"); issuer == "" {
			return fmt.Errorf("CONJ00037E Missing value for resource: %s", policy.MakeRef(a.account, "variable", a.id()+"/provider-uri"))
		}
	case authnGCP:
		issuer = s.googleIssuer()
	default:
		return nil
	}
	if _, err := s.jwks.get(ctx, issuer+discovery, ""); err != nil {
		return fmt.Errorf("CONJ00011E Failed to discover Identity Provider (Provider URI: '%s'). Reason: '%w'", redacted(issuer), err)
	}
	return nil
}

// redacted returns a URI without its password.
func redacted(uri string) string {
	parsed, err := url.Parse(uri)
	if err != nil {
		return "?"
	}
	return parsed.Redacted()
}

func webserviceNotFound(name string) reply {
	return statusFault(http.StatusNotFound, "CONJ00005E Webservice '"+name+"' not found")
}

// statusClasses are the genuine server's names of errors, by code. Clients compare them.
var statusClasses = map[string]string{
	"CONJ00004E": "Errors::Authentication::Security::AuthenticatorNotWhitelisted",
	"CONJ00005E": "Errors::Authentication::Security::WebserviceNotFound",
	"CONJ00006E": "Errors::Authentication::Security::RoleNotAuthorizedOnResource",
	"CONJ00037E": "Errors::Conjur::RequiredSecretMissing",
	"CONJ00056E": "Errors::Authentication::StatusNotSupported",
	"CONJ00122E": "Errors::Authentication::AuthnJwt::InvalidSigningKeySettings",
}

// statusFault answers with a message that begins with its code.
func statusFault(status int, message string) reply {
	code, _, _ := strings.Cut(message, " ")
	class := cmp.Or(statusClasses[code], "Errors::Authentication")
	return jsonReply(status, struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}{"error", "#<" + class + ": " + message + ">"})
}
