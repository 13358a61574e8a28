package conjurd

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/secretsync/syncer/pkg/conjurd/internal/load"
	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

const maxPolicy = 32 << 20

// loadPolicy loads the body into a branch: POST adds, PATCH updates, PUT replaces.
func (s *Server) loadPolicy(c *call) reply {
	c.vars["kind"] = "policy"
	mode, privilege := modeOf(c.r.Method)
	if refused := s.mayLoad(c, privilege); refused != nil {
		return *refused
	}
	body, err := c.body(maxPolicy)
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
	req := load.Request{
		Account: c.account(), Branch: c.vars["id"], Mode: mode, Text: body,
		Role: c.role, ClientIP: c.clientIP().String(), Now: s.now(),
	}
	if c.query.Get("dryRun") == "true" {
		return s.dryRun(c, req)
	}
	res, err := s.load(c.ctx(), req)
	if err != nil {
		return s.policyFault(c, err)
	}
	return loaded(res)
}

func modeOf(method string) (mode load.Mode, privilege string) {
	switch method {
	case http.MethodPut:
		return load.Replace, "update"
	case http.MethodPatch:
		return load.Update, "update"
	}
	return load.Add, "create"
}

// mayLoad checks the caller's privilege to load into the branch. It returns nil if
// the caller has it.
func (s *Server) mayLoad(c *call, privilege string) *reply {
	rep := s.snapshot(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		id := string(c.resource())
		o, err := tx.Object(id)
		if err != nil {
			return reply{}, err
		}
		if o == nil || !tx.Visible(roles, id, o) {
			return notFound(c.resource()), nil
		}
		allowed := tx.Allowed(roles, privilege, id, o)
		s.audit.decided(c, "policy "+c.r.Method, c.role, id, allowed)
		if !allowed {
			return forbidden(c), nil
		}
		return reply{}, nil
	})
	if rep.status == 0 {
		return nil
	}
	return &rep
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
