package conjurd

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// base64Line is the number of characters in a line of base64 output.
const base64Line = 60

// getSecrets returns the values of all requested variables, or none. All values are
// from the same moment.
func (s *Server) getSecrets(c *call) reply {
	ids, ok := batchIDs(c)
	if !ok {
		return badArgument("variable_ids")
	}
	return s.snapshot(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		b := batch{tx: tx, roles: roles, ids: ids, encode: strings.EqualFold(c.r.Header.Get("Accept-Encoding"), "base64")}
		if err := b.readValues(); err != nil {
			return reply{}, err
		}
		for _, id := range ids {
			s.audit.decided(c, "fetch", c.role, id, !slices.Contains(b.forbidden, id))
		}
		if all := b.culprits(); len(all) > 0 && !s.opt.Strict {
			return allCulprits(all), nil
		}
		return b.reply(c), nil
	})
}

// allCulprits names every variable that the caller cannot read. Older clients read
// the first name only. The answer does not reveal which variables are missing,
// unset or forbidden.
func allCulprits(ids []string) reply {
	return faultReply(http.StatusNotFound, fault{
		Code: "not_found", Message: notReadable(ids[0]), Details: map[string]any{"variables": ids},
	})
}

// batchIDs returns the requested full names, in the order of the request and
// without duplicates. It returns false if the list is empty or contains an empty
// id. A trailing comma is allowed.
func batchIDs(c *call) ([]string, bool) {
	list := c.query.Get("variable_ids")
	if list == "" {
		list = c.query.Get("variable_ids[]")
	}
	list = strings.TrimRight(list, ",")
	if list == "" {
		return nil, false
	}
	seen := map[string]bool{}
	var ids []string
	for id := range strings.SplitSeq(list, ",") {
		if id == "" {
			return nil, false
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, true
}

// batch is one read of several variables.
type batch struct {
	tx     *store.Tx
	roles  store.Roles
	ids    []string // as requested
	encode bool     // return values in base64

	values    map[string][]byte // id → value
	forbidden []string          // exist, but the caller may not read them
	missing   []string          // do not exist, in request order
	unset     []string          // have no value, in the order of ids
	unclean   bool              // a value is not valid UTF-8
}

func (b *batch) readValues() error {
	b.values = make(map[string][]byte, len(b.ids))
	for _, id := range b.ids {
		if !b.tx.Exists(id) {
			b.missing = append(b.missing, id)
			continue
		}
		if !b.tx.Permitted(b.roles, "execute", id) {
			o, err := b.tx.Object(id)
			if err != nil {
				return err
			}
			if !b.roles[o.Owner] {
				b.forbidden = append(b.forbidden, id)
				continue
			}
		}
		value, version, err := b.tx.Value(id)
		if err != nil {
			return err
		}
		if version == 0 {
			b.unset = append(b.unset, id)
			continue
		}
		b.values[id] = value
		b.unclean = b.unclean || !utf8.Valid(value)
	}
	slices.Sort(b.unset)
	return nil
}

// culprits returns all variables that the caller cannot read. The order begins with
// those that the genuine server would name.
func (b *batch) culprits() []string { return slices.Concat(b.missing, b.unset, b.forbidden) }

// reply decides in the order of the genuine server: permission, then existence,
// then value. It names at most one culprit.
func (b *batch) reply(c *call) reply {
	switch {
	case len(b.forbidden) > 0:
		return forbidden(c)
	case len(b.missing) > 0:
		return emptyOrMissing(b.missing[0])
	case len(b.unset) > 0:
		return emptyOrMissing(b.unset[0])
	case b.unclean && !b.encode:
		return faultReply(http.StatusNotAcceptable, fault{Code: "not_acceptable",
			Message: "CONJ00074E Issue encoding secret into JSON format, try including 'Accept-Encoding: base64' header in request."})
	}
	rep := reply{status: http.StatusOK, kind: typeJSON, body: b.marshal()}
	if b.encode {
		rep.header = map[string]string{"Content-Encoding": "base64"}
	}
	return rep
}

// marshal encodes the values in the order of their ids.
func (b *batch) marshal() []byte {
	ids := slices.Sorted(slices.Values(b.ids))
	var out bytes.Buffer
	out.WriteByte('{')
	for i, id := range ids {
		if i > 0 {
			out.WriteByte(',')
		}
		writeString(&out, id)
		out.WriteByte(':')
		if b.encode {
			writeString(&out, encodeLines(b.values[id]))
		} else {
			writeString(&out, string(b.values[id]))
		}
	}
	out.WriteByte('}')
	return out.Bytes()
}

func writeString(out *bytes.Buffer, s string) {
	text, err := json.Marshal(s)
	if err == nil { // a string always encodes
		out.Write(text)
	}
}

// encodeLines encodes in base64, with a line feed after every 60 characters and at
// the end.
func encodeLines(value []byte) string {
	text := base64.StdEncoding.EncodeToString(value)
	var out strings.Builder
	out.Grow(len(text) + len(text)/base64Line + 1)
	for len(text) > base64Line {
		out.WriteString(text[:base64Line])
		out.WriteByte('\n')
		text = text[base64Line:]
	}
	out.WriteString(text)
	out.WriteByte('\n')
	return out.String()
}
