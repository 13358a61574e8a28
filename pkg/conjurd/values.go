package conjurd

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

func needsV2() reply {
	return v2Fault(http.StatusBadRequest, `CONJ00194W The api belongs to v2 APIs but it missing the version "`+v2+`" in the Accept header`)
}

// notServed answers on a route of the newer API that conjurd lacks.
func (s *Server) notServed(c *call) reply {
	if !c.wantsV2() {
		return needsV2()
	}
	return v2Fault(http.StatusNotImplemented, "conjurd does not serve the v2 routes of branches, group members and authenticators; load a policy, or use /roles for members")
}

// v2Fault is the flat error format of the newer API.
func v2Fault(status int, message string) reply {
	rep := jsonReply(status, map[string]string{"code": strconv.Itoa(status), "message": message})
	rep.kind = v2
	return rep
}

// maxList bounds the items that are read from a list in a body. A longer list
// exceeds every limit.
const maxList = maxSet + 1

// list is a slice whose decoding bounds memory: a short body must not allocate a
// large one.
type list[T any] []T

func (l *list[T]) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return errors.Join(err, errors.New("not a list"))
	}
	for dec.More() && len(*l) < maxList {
		var item T
		if err := dec.Decode(&item); err != nil {
			return err
		}
		*l = append(*l, item)
	}
	return nil
}

// maxClip bounds the part of a caller's input that an answer repeats, in bytes.
const maxClip = 2 << 10

// clip shortens a text for an answer.
func clip(s string) string {
	if len(s) <= maxClip {
		return s
	}
	return strings.ToValidUTF8(s[:maxClip], "") + "…"
}

// decodeBody decodes a JSON body. It returns nil if the body is valid.
func (c *call) decodeBody(limit int64, into any) *reply {
	b, err := c.body(limit)
	no := empty(http.StatusBadRequest)
	if errors.Is(err, errTooLong) {
		no = empty(http.StatusRequestEntityTooLarge)
	}
	if err != nil || json.Unmarshal(b, into) != nil {
		return &no
	}
	return nil
}

// plain returns the bytes of a value that arrived in JSON.
func plain(text, encoding string) ([]byte, bool) {
	switch encoding {
	case "":
		return []byte(text), true
	case "base64":
		b, err := base64.StdEncoding.DecodeString(text)
		return b, err == nil
	}
	return nil, false
}

const (
	// maxMultiSet bounds the body of an atomic set, in bytes. maxSet bounds its
	// number of values.
	maxMultiSet = 64 << 20
	maxSet      = 10_000
	// maxCulprits bounds the number of variables that a refusal names.
	maxCulprits = 100
)

// newValue is one value to set.
type newValue struct {
	ID       string `json:"id"` // has no account and no kind
	Value    string `json:"value"`
	Encoding string `json:"encoding"` // encoding of Value: "" or "base64"
	// Version, if given, must be the variable's current version. 0 means that the
	// variable must never have been set.
	Version *uint64 `json:"version"`
}

// culprit is a variable that prevented an atomic set.
type culprit struct {
	ID      string `json:"id"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

type setJSON struct {
	ID      string `json:"id"`
	Version uint64 `json:"version"`
}

// setValues sets all values in one transaction. If any value is invalid, it sets
// none and names all invalid ones.
func (s *Server) setValues(c *call) reply {
	if refused := s.mayUpdateAny(c); refused != nil {
		return *refused
	}
	var req struct {
		Secrets list[newValue] `json:"secrets"`
	}
	if refused := c.decodeBody(maxMultiSet, &req); refused != nil {
		if refused.status == http.StatusBadRequest {
			return badArgument(`the body is not JSON of the form {"secrets":[{"id":"path/name","value":"..."}]}`)
		}
		return *refused
	}
	if len(req.Secrets) == 0 || len(req.Secrets) > maxSet {
		return badArgument("secrets must have between 1 and " + strconv.Itoa(maxSet) + " values")
	}
	m := multiSet{s: s, c: c, seen: map[string]bool{}, codes: map[string]bool{}}
	err := s.update(c.ctx(), func(tx *store.Tx) error { return m.apply(tx, req.Secrets) })
	switch {
	case errors.Is(err, errRefused):
		return m.refusal()
	case err != nil:
		return s.broken(c, err)
	}
	return jsonReply(http.StatusOK, map[string]any{"secrets": m.done})
}

// mayUpdateAny checks that the caller may update at least one variable of the
// account. It returns nil if so. The check precedes the reading of a long body.
func (s *Server) mayUpdateAny(c *call) *reply {
	rep := s.snapshot(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		all := string(policy.MakeRef(c.account(), "variable", ""))
		if !tx.AllowedAny(roles, "update", all) {
			s.audit.decided(c, "update", c.role, all, false)
			return forbidden(c), nil
		}
		return reply{}, nil
	})
	if rep.status == 0 {
		return nil
	}
	return &rep
}

// multiSet is one atomic set.
type multiSet struct {
	s        *Server
	c        *call
	roles    store.Roles
	seen     map[string]bool
	done     []setJSON
	culprits []culprit       // the first maxCulprits of them
	faults   int             // number of all faults
	codes    map[string]bool // codes of all faults
}

// apply checks all values, even after a fault, so that the answer names every
// fault. A fault then undoes the transaction.
func (m *multiSet) apply(tx *store.Tx, values []newValue) error {
	if m.roles = tx.RolesOf(m.c.role); m.roles == nil {
		return errRefused
	}
	for _, v := range values {
		code, message, err := m.one(tx, v)
		if err != nil {
			return err
		}
		if code != "" {
			m.fault(culprit{v.ID, code, message})
		}
	}
	if m.faults > 0 {
		return errRefused
	}
	return nil
}

func (m *multiSet) fault(cu culprit) {
	m.faults++
	m.codes[cu.Code] = true
	if len(m.culprits) < maxCulprits {
		cu.ID = clip(cu.ID)
		m.culprits = append(m.culprits, cu)
	}
}

// one sets a value, or returns a code and a message that describe its fault.
func (m *multiSet) one(tx *store.Tx, v newValue) (code, message string, err error) {
	ref := policy.MakeRef(m.c.account(), "variable", v.ID)
	if m.seen[v.ID] {
		return "duplicate", "the id is given more than once", nil
	}
	m.seen[v.ID] = true
	o, err := tx.Object(string(ref))
	if err != nil {
		return "", "", err
	}
	if o == nil || !tx.Visible(m.roles, string(ref), o) {
		return "not_found", clip(ref.NotFound()), nil
	}
	allowed := tx.Allowed(m.roles, "update", string(ref), o)
	m.s.audit.decided(m.c, "update", m.c.role, string(ref), allowed)
	if !allowed {
		return "forbidden", "the variable may not be updated", nil
	}
	value, ok := plain(v.Value, v.Encoding)
	if !ok {
		return "bad_encoding", "the value is not what its encoding says", nil
	}
	switch err := m.s.checkValue(value); {
	case errors.Is(err, errEmptyValue):
		return "empty", err.Error(), nil
	case err != nil:
		return "too_large", err.Error(), nil
	}
	return m.put(tx, v, string(ref), value)
}

// put compares the version and sets the value.
func (m *multiSet) put(tx *store.Tx, v newValue, id string, value []byte) (code, message string, err error) {
	if v.Version != nil {
		_, have, err := tx.Value(id)
		if err != nil {
			return "", "", err
		}
		if have != *v.Version {
			return "version_conflict", fmt.Sprintf("the variable has version %d instead of %d", have, *v.Version), nil
		}
	}
	version, err := tx.SetValue(id, value)
	m.done = append(m.done, setJSON{v.ID, version})
	return "", "", err
}

// statuses are the HTTP statuses of refusals by code. The first row whose code
// occurs applies.
var statuses = []struct {
	code   string
	status int
}{
	{"forbidden", http.StatusForbidden},
	{"not_found", http.StatusNotFound},
	{"too_large", http.StatusRequestEntityTooLarge},
	{"empty", http.StatusUnprocessableEntity},
	{"bad_encoding", http.StatusUnprocessableEntity},
	{"duplicate", http.StatusUnprocessableEntity},
	{"version_conflict", http.StatusConflict},
}

func (m *multiSet) refusal() reply {
	if m.roles == nil {
		return forbidden(m.c)
	}
	for _, st := range statuses {
		if m.codes[st.code] {
			return faultReply(st.status, fault{
				Code:    st.code,
				Message: fmt.Sprintf("no value was set, because of %d variables", m.faults),
				Details: map[string]any{"variables": m.culprits},
			})
		}
	}
	return failure()
}
