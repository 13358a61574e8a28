package conjurd

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// emptyOrMissing is the common answer to a read of a variable that does not exist,
// has no value, or must stay hidden from the caller.
func emptyOrMissing(id string) reply {
	return faultReply(http.StatusNotFound, fault{
		Code: "not_found", Message: notReadable(id),
	})
}

func notReadable(id string) string { return "CONJ00076E Variable " + id + " is empty or not found." }

// forbidden answers a refusal that reveals nothing.
func forbidden(c *call) reply {
	rep := empty(http.StatusForbidden)
	if c.wantsV2() {
		rep.kind = v2
	}
	return rep
}

// snapshot runs f with the caller's roles. A caller whose role no longer exists
// gets forbidden. On errRefused it returns the reply.
func (s *Server) snapshot(c *call, f func(*store.Tx, store.Roles) (reply, error)) reply {
	var rep reply
	err := s.view(c.ctx(), func(tx *store.Tx) (err error) {
		roles := tx.RolesOf(c.role)
		if roles == nil {
			rep = forbidden(c)
			return nil
		}
		rep, err = f(tx, roles)
		return err
	})
	if err != nil && (!errors.Is(err, errRefused) || rep.status == 0) {
		return s.broken(c, err)
	}
	return rep
}

// getSecret returns one variable's value.
func (s *Server) getSecret(c *call) reply {
	id := string(policy.MakeRef(c.account(), "variable", c.vars["id"]))
	return s.snapshot(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		allowed := tx.Exists(id) && tx.Permitted(roles, "execute", id)
		if !allowed { // except to its owner
			o, err := tx.Object(id)
			if err != nil {
				return reply{}, err
			}
			if o == nil || !tx.Visible(roles, id, o) {
				return emptyOrMissing(id), nil
			}
			allowed = roles[o.Owner]
		}
		s.audit.decided(c, "fetch", c.role, id, allowed)
		if !allowed {
			return forbidden(c), nil
		}
		value, err := s.wanted(c, tx, id)
		if errors.Is(err, errVersion) {
			return badArgument("invalid type for parameter 'version'"), nil
		}
		if err != nil || value == nil {
			return emptyOrMissing(id), err
		}
		kind, err := tx.Annotation(id, "conjur/mime_type")
		return secretReply(value, kind), err
	})
}

var errVersion = errors.New("the version is not a number")

// wanted returns the latest value, or the value of the requested version. It
// returns nil if there is none.
func (s *Server) wanted(c *call, tx *store.Tx, id string) ([]byte, error) {
	if !c.query.Has("version") {
		value, _, err := tx.Value(id)
		return value, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(c.query.Get("version")), 10, 64)
	if err != nil {
		return nil, errVersion
	}
	return tx.Version(id, uint64(n)) // versions of 0 and below never exist
}

func secretReply(value []byte, kind string) reply {
	if kind == "" {
		kind = typeBytes
	}
	return reply{status: http.StatusOK, kind: kind, body: value, header: map[string]string{
		"Content-Disposition": "attachment", "Content-Transfer-Encoding": "binary",
	}}
}

// setSecret gives a variable a new value, or requests its rotation. Both need the
// same privilege. It checks the privilege before it reads the body, and again
// afterwards.
func (s *Server) setSecret(c *call) reply {
	ref := policy.MakeRef(c.account(), "variable", c.vars["id"])
	var before *reply
	err := s.view(c.ctx(), func(tx *store.Tx) (err error) {
		before, err = s.maySet(c, tx, ref)
		return err
	})
	if err != nil {
		return s.broken(c, err)
	}
	if before != nil {
		return *before
	}
	value, err := c.body(s.maxValue())
	if errors.Is(err, errTooLong) {
		return empty(http.StatusRequestEntityTooLarge)
	}
	if err != nil {
		return empty(http.StatusBadRequest)
	}
	var rep reply
	err = s.update(c.ctx(), func(tx *store.Tx) error {
		refused, err := s.maySet(c, tx, ref)
		if err != nil || refused != nil {
			if refused != nil {
				rep = *refused
			}
			return errors.Join(err, errRefused)
		}
		s.audit.decided(c, "update", c.role, string(ref), true)
		rep = empty(http.StatusCreated)
		if c.query.Has("expirations") {
			return nil
		}
		if isBlank(value) {
			rep = badArgument(errEmptyValue.Error())
			return errRefused
		}
		_, err = tx.SetValue(string(ref), value)
		return err
	})
	if err != nil && rep.status < 400 {
		return s.broken(c, err)
	}
	return rep
}

// errRefused rolls a transaction back. It is not a failure.
var errRefused = errors.New("refused")

// maySet checks the caller's privilege to set the variable. It returns nil if the
// caller has it. The function's caller then records the decision in the audit log.
func (s *Server) maySet(c *call, tx *store.Tx, ref policy.Ref) (*reply, error) {
	roles := tx.RolesOf(c.role)
	if roles == nil {
		no := forbidden(c)
		return &no, nil
	}
	o, err := tx.Object(string(ref))
	if err != nil {
		return nil, err
	}
	if o == nil || !tx.Visible(roles, string(ref), o) {
		no := notFound(ref)
		return &no, nil
	}
	if !tx.Allowed(roles, "update", string(ref), o) {
		s.audit.decided(c, "update", c.role, string(ref), false)
		no := forbidden(c)
		return &no, nil
	}
	return nil, nil
}
