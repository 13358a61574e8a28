package conjurd

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/effective"
	"github.com/secretsync/syncer/pkg/conjurd/internal/load"
	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// maxPolicyDepth bounds the depth of a shown policy, as in the genuine server.
const maxPolicyDepth = 64

// showPolicy answers with the effective policy of a branch: as YAML, or as JSON if
// the request's Content-Type is JSON.
func (s *Server) showPolicy(c *call) reply {
	c.vars["kind"] = "policy"
	depth := maxPolicyDepth
	if n, err := strconv.Atoi(c.query.Get("depth")); err == nil && n >= 0 {
		depth = min(n, maxPolicyDepth)
	}
	return s.snapshot(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		id := string(c.resource())
		o, err := tx.Object(id)
		if err != nil {
			return reply{}, err
		}
		if o == nil || !tx.Visible(roles, id, o) {
			return notFound(c.resource()), nil
		}
		if !tx.Allowed(roles, "read", id, o) {
			return forbidden(c), nil
		}
		list, err := effective.Of(tx, c.account(), c.vars["id"], depth)
		if err != nil {
			return reply{}, err
		}
		if strings.HasPrefix(c.r.Header.Get("Content-Type"), "application/json") {
			return jsonReply(http.StatusOK, list), nil
		}
		text, err := effective.YAML(list)
		return reply{status: http.StatusOK, kind: "application/x-yaml; charset=utf-8", body: text}, err
	})
}

type itemsJSON struct {
	Items []load.Item `json:"items"`
}

type updatesJSON struct {
	Before itemsJSON `json:"before"`
	After  itemsJSON `json:"after"`
}

func items(list []load.Item) itemsJSON {
	if list == nil {
		list = []load.Item{}
	}
	return itemsJSON{list}
}

// dryRun answers with the effects of a load, or with the faults in its text.
func (s *Server) dryRun(c *call, req load.Request) reply {
	var diff *load.Diff
	st, err := req.Parse()
	if err == nil {
		err = s.store.Try(func(tx *store.Tx) (err error) {
			tx.Until(c.ctx())
			diff, err = load.Preview(tx, req, st)
			return err
		})
	}
	if bad, ok := errors.AsType[*policy.Error](err); ok {
		return dryFault(req.Branch, bad)
	}
	if err != nil {
		return s.policyFault(c, err)
	}
	return jsonReply(http.StatusOK, struct {
		Status  string      `json:"status"`
		Created itemsJSON   `json:"created"`
		Updated updatesJSON `json:"updated"`
		Deleted itemsJSON   `json:"deleted"`
	}{
		"Valid YAML", items(diff.Created),
		updatesJSON{items(diff.Before), items(diff.After)}, items(diff.Deleted),
	})
}

func dryFault(branch string, bad *policy.Error) reply {
	type context struct {
		Policy string `json:"policy_id"`
		Lines  []int  `json:"offending_lines"`
	}
	type entry struct {
		Line    int     `json:"line"`
		Column  int     `json:"column"`
		Message string  `json:"message"`
		Context context `json:"context"`
	}
	message := bad.Message
	if bad.Hint != "" {
		message += "\n" + bad.Hint
	}
	return jsonReply(http.StatusUnprocessableEntity, struct {
		Status string  `json:"status"`
		Errors []entry `json:"errors"`
	}{"Invalid YAML", []entry{{bad.Line, bad.Column, message, context{branch, []int{bad.Line}}}}})
}
