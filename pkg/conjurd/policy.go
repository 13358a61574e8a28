package conjurd

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/effective"
	"github.com/secretsync/syncer/pkg/conjurd/internal/load"
	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

const maxPolicy = 32 << 20

// loadPolicy loads the body into a branch: POST adds, PATCH updates, PUT replaces.
func (s *Server) loadPolicy(c *call) reply {
	c.vars["kind"] = "policy"
	req := load.Request{
		Account: c.account(), Branch: c.vars["id"], Mode: modes[c.r.Method],
		Role: c.role, ClientIP: c.clientIP().String(), Now: s.now(),
	}
	var refused *reply
	req.May = func(tx *store.Tx) (err error) {
		if refused, err = s.mayLoad(c, tx, &req); err == nil && refused != nil {
			err = errRefused
		}
		return err
	}
	switch err := s.view(c.ctx(), req.May); {
	case refused != nil:
		return *refused
	case err != nil:
		return s.broken(c, err)
	}
	s.audit.decided(c, "policy "+c.r.Method, c.role, string(c.resource()), true)
	var err error
	req.Text, err = c.body(maxPolicy)
	if errors.Is(err, errTooLong) {
		return empty(http.StatusRequestEntityTooLarge)
	}
	if err != nil {
		return empty(http.StatusBadRequest)
	}
	select {
	case s.loading <- struct{}{}:
		defer func() { <-s.loading }()
	default:
		return busy()
	}
	rep := s.loadOrTry(c, req)
	if refused != nil {
		return *refused
	}
	return rep
}

// loadOrTry loads a text, or shows the effects in a dry run.
func (s *Server) loadOrTry(c *call, req load.Request) reply {
	if strings.EqualFold(strings.TrimSpace(c.query.Get("dryRun")), "true") {
		return s.dryRun(c, req)
	}
	res, err := s.load(c.ctx(), req)
	if err != nil {
		return s.policyFault(c, err)
	}
	return loaded(res)
}

// modes holds the modes of the methods.
var modes = map[string]load.Mode{http.MethodPost: load.Add, http.MethodPatch: load.Update, http.MethodPut: load.Replace}

// mayLoad checks the caller's privilege to load into the branch. It returns nil if
// the caller has it. The function's caller then records the decision in the audit
// log.
func (s *Server) mayLoad(c *call, tx *store.Tx, req *load.Request) (*reply, error) {
	roles := tx.RolesOf(c.role)
	no := forbidden(c)
	if roles == nil {
		return &no, nil
	}
	id := string(c.resource())
	o, err := tx.Object(id)
	if err != nil {
		return nil, err
	}
	if o == nil || !tx.Visible(roles, id, o) {
		no = notFound(c.resource())
		return &no, nil
	}
	privilege := "update"
	if req.Mode == load.Add {
		privilege = "create"
	}
	if tx.Allowed(roles, privilege, id, o) && (req.Mode != load.Replace || req.Replaceable(tx, roles)) {
		return nil, nil
	}
	s.audit.decided(c, "policy "+c.r.Method, c.role, id, false)
	return &no, nil
}

// busy answers a load that arrives during another.
func busy() reply {
	rep := faultReply(http.StatusConflict, fault{Code: "policy_conflict", Message: "Concurrent policy load in progress, please retry"})
	rep.header = map[string]string{"Retry-After": strconv.Itoa(1 + rand.IntN(8))}
	return rep
}

type createdJSON struct {
	ID     string `json:"id"`
	APIKey string `json:"api_key"`
}

func loaded(res *load.Result) reply {
	created := map[string]createdJSON{}
	for _, r := range res.Created {
		created[r.Role] = createdJSON{r.Role, r.APIKey}
	}
	return jsonReply(http.StatusCreated, struct {
		Created  map[string]createdJSON `json:"created_roles"`
		Version  uint64                 `json:"version"`
		Warnings []string               `json:"warnings,omitempty"`
	}{created, res.Version, res.Warnings})
}

// policyFault answers for a text that failed to load.
func (s *Server) policyFault(c *call, err error) reply {
	if bad, ok := errors.AsType[*policy.Error](err); ok {
		return s.badPolicy(bad)
	}
	if gone, ok := errors.AsType[*load.NoBranchError](err); ok {
		return notFound(gone.Policy)
	}
	switch {
	case errors.Is(err, errRefused):
		return reply{} // loadPolicy has the refusal
	case errors.Is(err, load.ErrEmpty):
		return invalid("policy_text", "is not present")
	case errors.Is(err, load.ErrDeletion):
		return invalid("policy_text", "may not contain deletion statements")
	}
	return s.broken(c, err)
}

// place is the position of a fault in a text.
type place struct {
	Code     string `json:"code"`
	Filename string `json:"filename"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
}

// badPolicy answers with the position of the fault. For some faults the genuine
// server gives no position.
func (s *Server) badPolicy(bad *policy.Error) reply {
	f := fault{Code: "policy_invalid", Message: bad.Error()}
	if s.opt.Strict && bad.Genuine != "" {
		f.Message = bad.Genuine
	}
	if bad.Located() && !(bad.Bare && s.opt.Strict) {
		f.Inner = place{"policy_invalid", "policy", bad.Line, bad.Column}
	}
	return faultReply(http.StatusUnprocessableEntity, f)
}

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
