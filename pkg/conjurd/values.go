package conjurd

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// maxValues bounds the number of variables in one request of the newer API. maxIDs
// bounds the request's body, in bytes.
const (
	maxValues = 250
	maxIDs    = 2 << 20
)

// valueJSON is the answer for one variable.
type valueJSON struct {
	ID     string  `json:"id"`
	Value  *string `json:"value,omitempty"`
	Status int     `json:"status"`
}

// getValues returns, for each variable, its value or the reason why it has none. It
// is the batch read of Conjur's SaaS v2. The ids have no account and no kind. With
// Accept-Encoding "base64" the values are encoded as in the classic batch.
func (s *Server) getValues(c *call) reply {
	if !c.wantsV2() {
		return needsV2()
	}
	var req struct {
		IDs list[string] `json:"ids"`
	}
	if refused := c.decodeBody(maxIDs, &req); refused != nil {
		return v2Fault(refused.status, "the body is not JSON of the form {\"ids\":[\"path/name\"]}")
	}
	if len(req.IDs) == 0 || len(req.IDs) > maxValues {
		return v2Fault(http.StatusUnprocessableEntity, "ids must name between 1 and "+strconv.Itoa(maxValues)+" variables")
	}
	account := c.account()
	if account == "" {
		account = policy.Ref(c.role).Account()
	}
	encode := strings.EqualFold(c.r.Header.Get("Accept-Encoding"), "base64")
	return s.snapshot(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		out := make([]valueJSON, len(req.IDs))
		for i, id := range req.IDs {
			var err error
			full := string(policy.MakeRef(account, "variable", id))
			if out[i], err = oneValue(tx, roles, full, encode); err != nil {
				return reply{}, err
			}
			out[i].ID = id
			s.audit.decided(c, "fetch", c.role, full, out[i].Status == http.StatusOK)
		}
		rep := jsonReply(http.StatusOK, map[string]any{"secrets": out})
		rep.kind = v2
		if encode {
			rep.header = map[string]string{"Content-Encoding": "base64"}
		}
		return rep, nil
	})
}

// oneValue uses the statuses of a single read, and 406 for a value that JSON cannot
// represent.
func oneValue(tx *store.Tx, roles store.Roles, id string, encode bool) (valueJSON, error) {
	status := func(n int) (valueJSON, error) { return valueJSON{Status: n}, nil }
	o, err := tx.Object(id)
	switch {
	case err != nil:
		return valueJSON{}, err
	case o == nil || !tx.Visible(roles, id, o):
		return status(http.StatusNotFound)
	case !tx.Allowed(roles, "execute", id, o):
		return status(http.StatusForbidden)
	}
	value, version, err := tx.Value(id)
	switch {
	case err != nil:
		return valueJSON{}, err
	case version == 0:
		return status(http.StatusNotFound)
	case !encode && !utf8.Valid(value):
		return status(http.StatusNotAcceptable)
	}
	text := string(value)
	if encode {
		text = encodeLines(value)
	}
	return valueJSON{Value: &text, Status: http.StatusOK}, nil
}

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
