package conjurd

import (
	"errors"
	"fmt"
	"net/http"
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
// policy must declare a webservice with its name.
func (kind authenticatorKind) status(s *Server, c *call) reply {
	a := newAuthenticator(kind, c)
	id := a.webservice() + "/status"
	return s.snapshot(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		o, err := tx.Object(id)
		if err != nil {
			return reply{}, err
		}
		if o == nil || !tx.Visible(roles, id, o) {
			return statusFault(http.StatusNotFound, "#<Errors::Authentication::Security::WebserviceNotFound: CONJ00005E Webservice '"+
				strings.TrimPrefix(policy.Ref(id).ID(), "conjur/")+"' not found>"), nil
		}
		if !tx.Allowed(roles, "read", id, o) {
			return forbidden(c), nil
		}
		if err := a.read(tx); err != nil {
			return statusFault(http.StatusInternalServerError, err.Error()), nil
		}
		return jsonReply(http.StatusOK, map[string]string{"status": "ok"}), nil
	})
}

func statusFault(status int, message string) reply {
	return jsonReply(status, struct {
		Status string `json:"status"`
		Error  string `json:"error"`
	}{"error", message})
}
