package conjurd

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/effective"
	"github.com/secretsync/syncer/pkg/conjurd/internal/load"
	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// Limits of a shown policy, as in the genuine server.
const (
	maxPolicyDepth = 64
	maxPolicySize  = 100_000
)

// showPolicy answers with the effective policy of a branch: as YAML, or as JSON if
// the request's Content-Type is JSON. The caller must be a member of the branch's
// owner.
func (s *Server) showPolicy(c *call) reply {
	c.vars["kind"] = "policy"
	return s.snapshot(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		id := string(c.resource())
		o, err := tx.Object(id)
		if err != nil {
			return reply{}, err
		}
		if o == nil || !tx.Visible(roles, id, o) {
			return notFound(c.resource()), nil
		}
		if !roles[o.Owner] {
			return forbidden(c), nil
		}
		depth, ok1 := c.number("depth", maxPolicyDepth)
		limit, ok2 := c.number("limit", maxPolicySize)
		if !ok1 || !ok2 {
			return empty(http.StatusBadRequest), nil
		}
		if n := policySize(tx, roles, c.account(), c.vars["id"], depth); n > limit {
			return faultReply(http.StatusUnprocessableEntity, fault{Code: "unprocessable_entity",
				Message: fmt.Sprintf("CONJ00164E Policy max allowed 'limit' = %d exceeded. Value for policy is: %d", limit, n)}), nil
		}
		list, err := effective.Of(tx, roles, c.account(), c.vars["id"], depth)
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

// number reads a parameter from 0 to the limit. Without the parameter it returns the
// limit.
func (c *call) number(name string, limit int) (int, bool) {
	if !c.query.Has(name) {
		return limit, true
	}
	n, err := strconv.Atoi(c.query.Get(name))
	return n, err == nil && n >= 0 && n <= limit
}

// policySize counts the resources of a policy that the roles may see, with their
// annotations and permissions. Like the genuine server, it does not count users, and
// depth is the number of slashes below that of the policy.
func policySize(tx *store.Tx, roles store.Roles, account, branch string, depth int) (n int) {
	if branch == policy.RootPolicy {
		branch = ""
	}
	depth += strings.Count(branch, "/")
	for id, o := range tx.Objects(account + ":") {
		ref := policy.Ref(id)
		below := branch == "" || ref.ID() == branch || strings.HasPrefix(ref.ID(), branch+"/")
		if below && ref.Kind() != "user" && strings.Count(id, "/") <= depth && tx.Visible(roles, id, o) {
			n += 1 + len(o.Annotations) + len(tx.Permissions(id))
		}
	}
	return n
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
	message := bad.Message + "\n" + bad.Hint
	line, column := bad.Line, bad.Column
	if bad.MarkLine > 0 {
		line, column = bad.MarkLine, bad.MarkColumn
	}
	return jsonReply(http.StatusUnprocessableEntity, struct {
		Status string  `json:"status"`
		Errors []entry `json:"errors"`
	}{"Invalid YAML", []entry{{line, column, message, context{branch, []int{line}}}}})
}
