package conjurd

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

const (
	maxLimit     = 1000
	legacyLimit  = 10_000 // also accepted by the genuine server
	offsetsLimit = 10     // if there is an offset and no limit
)

// listing selects resources.
type listing struct {
	start         string // prefix of the ids
	role, owner   string
	owners        store.Roles // owner and the roles that it holds
	words         []string
	limit, offset int // limit -1 means none
	count         bool
}

// listResources lists or counts the resources that the caller may see. Without a
// limit it lists all. The genuine server silently stops at 1,000.
func (s *Server) listResources(c *call) reply {
	l, refusal, ok := newListing(c)
	if !ok {
		return refusal
	}
	return s.snapshot(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		if l.role != "" {
			if !roles[l.role] {
				return forbidden(c), nil
			}
			roles = tx.RolesOf(l.role)
		}
		if l.owner != "" {
			if l.owners = tx.RolesOf(l.owner); l.owners == nil {
				return notFound(policy.Ref(l.owner)), nil
			}
		}
		return l.answer(tx, roles)
	})
}

func (l *listing) answer(tx *store.Tx, roles store.Roles) (reply, error) {
	list := []resourceJSON{}
	skip, n := l.offset, 0
	for id, o := range tx.Objects(l.start) {
		if !l.wants(id, o) || !tx.Visible(roles, id, o) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if l.limit >= 0 && n == l.limit {
			break
		}
		n++
		if l.count {
			continue
		}
		res, err := describe(tx, id, o)
		if err != nil {
			return reply{}, err
		}
		list = append(list, res)
	}
	if l.count {
		return jsonReply(http.StatusOK, map[string]int{"count": n}), nil
	}
	return jsonReply(http.StatusOK, list), nil
}

func (l *listing) wants(id string, o *store.Object) bool {
	if l.owner != "" && !l.owners[o.Owner] {
		return false
	}
	return containsWords(id, o, l.words)
}

// containsWords reports whether all words occur in the kind, the id or the
// annotations.
func containsWords(id string, o *store.Object, wanted []string) bool {
	if len(wanted) == 0 {
		return true
	}
	have := words(policy.Ref(id).Kind() + " " + policy.Ref(id).ID())
	for _, a := range o.Annotations {
		have = append(have, words(a.Value)...)
	}
	for _, w := range wanted {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}

// words splits a text as a search does: into words of letters and digits.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// newListing reads the parameters.
func newListing(c *call) (*listing, reply, bool) {
	account := c.account()
	if account == "" {
		account = policy.Ref(c.role).Account()
	}
	kind := c.vars["kind"]
	if kind != "" && !slices.Contains(kinds, kind) {
		return nil, noPath(), false
	}
	if kind == "" {
		kind = c.query.Get("kind")
	}
	l := &listing{start: account + ":", limit: -1, count: c.query.Get("count") == "true", words: words(c.query.Get("search"))}
	if kind != "" {
		l.start += kind + ":"
	}
	l.role = c.query.Get("role")
	if l.role == "" {
		l.role = c.query.Get("acting_as")
	}
	c.vars["account"] = account
	if l.role != "" {
		l.role = fullRole(c, l.role)
	}
	if l.owner = c.query.Get("owner"); l.owner != "" {
		if !strings.Contains(l.owner, ":") {
			return nil, badArgument("Expected at least 2 tokens in " + l.owner), false
		}
		l.owner = fullRole(c, l.owner)
	}
	return page(c, l)
}

// page reads limit and offset.
func page(c *call, l *listing) (*listing, reply, bool) {
	integer := func(name string) (int, bool) {
		n, err := strconv.Atoi(c.query.Get(name))
		return n, err == nil && strconv.Itoa(n) == c.query.Get(name) // not +3 and not 03
	}
	no := func(message string) (*listing, reply, bool) {
		return nil, faultReply(http.StatusUnprocessableEntity, fault{Code: "unprocessable_entity", Message: message}), false
	}
	var isInt bool
	if c.query.Has("limit") {
		if l.limit, isInt = integer("limit"); !isInt || l.limit < 1 {
			return no("'limit' contains an invalid value. 'limit' must be a positive integer.")
		}
		if l.limit > maxLimit && l.limit != legacyLimit {
			return no("'Limit' parameter must not exceed 1000")
		}
	}
	if c.query.Has("offset") {
		if l.offset, isInt = integer("offset"); !isInt || l.offset < 0 {
			return no("'offset' contains an invalid value. 'offset' must be an integer greater than or equal to 0.")
		}
		if l.limit < 0 {
			l.limit = offsetsLimit
		}
	}
	return l, reply{}, true
}
