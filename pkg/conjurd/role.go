package conjurd

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

type membershipJSON struct {
	Admin     bool   `json:"admin_option"`
	Ownership bool   `json:"ownership"`
	Role      string `json:"role"`
	Member    string `json:"member"`
	Policy    string `json:"policy,omitempty"`
}

// showRole describes a role, or lists its memberships or its members.
func (s *Server) showRole(c *call) reply {
	if !policy.IsRole(c.vars["kind"]) {
		return noPath()
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
		switch {
		case c.query.Has("graph"):
			return roleGraph(tx, roles, id)
		case c.query.Has("all"):
			return listRoles(c, tx, id)
		case c.query.Has("memberships"):
			return listMemberships(c, tx, id)
		case c.query.Has("members"):
			return listMembers(c, tx, id)
		}
		return describeRole(tx, id, o)
	})
}

func describeRole(tx *store.Tx, id string, o *store.Object) (reply, error) {
	members, err := tx.Members(id)
	return jsonReply(http.StatusOK, struct {
		CreatedAt stamp            `json:"created_at"`
		ID        string           `json:"id"`
		Policy    string           `json:"policy,omitempty"`
		Members   []membershipJSON `json:"members"`
	}{stamp(o.CreatedAt), id, o.Policy, membershipsJSON(members)}), err
}

// listRoles lists the role and all roles that it belongs to.
func listRoles(c *call, tx *store.Tx, id string) (reply, error) {
	wanted, refusal := filterOf(c)
	if refusal != nil {
		return *refusal, nil
	}
	list := slices.DeleteFunc(sorted(tx.RolesOf(id)), func(role string) bool { return !wanted(role) })
	return counted(c, len(list), list), nil
}

// listMemberships lists the roles that the role belongs to directly. Like the
// genuine server, it compares the filter with the member, not with the role.
func listMemberships(c *call, tx *store.Tx, id string) (reply, error) {
	wanted, refusal := filterOf(c)
	if refusal != nil {
		return *refusal, nil
	}
	list, err := tx.Memberships(id)
	if err != nil {
		return reply{}, err
	}
	list, err = searchRoles(c, tx, list, func(m store.Membership) string { return m.Role })
	list = slices.DeleteFunc(list, func(m store.Membership) bool { return !wanted(m.Member) })
	return counted(c, len(list), membershipsJSON(list)), err
}

// listMembers lists the role's direct members. The count disregards limit and
// offset.
func listMembers(c *call, tx *store.Tx, id string) (reply, error) {
	list, err := tx.Members(id)
	if err != nil {
		return reply{}, err
	}
	list, err = searchRoles(c, tx, list, func(m store.Membership) string { return m.Member })
	if err != nil || c.query.Has("count") {
		return counted(c, len(list), nil), err
	}
	if c.query.Has("limit") || c.query.Has("offset") {
		limit := offsetsLimit
		offset, _ := strconv.Atoi(c.query.Get("offset")) // like the genuine server: 0 if it is not a number
		if c.query.Has("limit") {
			limit, _ = strconv.Atoi(c.query.Get("limit"))
		}
		if limit < 1 || offset < 0 {
			return failure(), nil // as the genuine server's database library does
		}
		list = list[min(offset, len(list)):]
		list = list[:min(limit, len(list))]
	}
	return jsonReply(http.StatusOK, membershipsJSON(list)), nil
}

// counted answers with the list, or with its length if the query has "count".
func counted(c *call, n int, list any) reply {
	if c.query.Has("count") {
		list = map[string]int{"count": n}
	}
	return jsonReply(http.StatusOK, list)
}

// searchRoles selects the memberships whose other side, named by other, fits the
// parameters search and kind.
func searchRoles(c *call, tx *store.Tx, list []store.Membership, other func(store.Membership) string) ([]store.Membership, error) {
	kinds, search := listOf(c.query, "kind"), words(c.query.Get("search"))
	var out []store.Membership
	for _, m := range list {
		id := other(m)
		if kinds != nil && !slices.Contains(kinds, policy.Ref(id).Kind()) {
			continue
		}
		if c.query.Has("search") {
			o, err := tx.Object(id)
			if err != nil {
				return nil, err
			}
			if o == nil || len(search) == 0 || !containsWords(id, o, search) {
				continue
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// filterOf returns whether the parameter filter selects a role. Without the
// parameter it selects all.
func filterOf(c *call) (func(role string) bool, *reply) {
	filter := listOf(c.query, "filter")
	if filter == nil {
		return func(string) bool { return true }, nil
	}
	for i, id := range filter {
		if !strings.Contains(id, ":") {
			no := badArgument("Expected at least 2 tokens in " + id)
			return nil, &no
		}
		filter[i] = fullRole(c, id)
	}
	return func(role string) bool { return slices.Contains(filter, role) }, nil
}

// listOf returns the values of a parameter: all of name[], or the one of name. It
// returns nil if there is none.
func listOf(query url.Values, name string) []string {
	if query.Has(name) {
		return []string{query.Get(name)}
	}
	return slices.Clone(query[name+"[]"])
}

func membershipsJSON(list []store.Membership) []membershipJSON {
	out := []membershipJSON{}
	for _, m := range list {
		out = append(out, membershipJSON{m.Admin, m.Ownership, m.Role, m.Member, m.Policy})
	}
	return out
}

// addMember makes a role a member of another, outside of policy. The caller needs
// the privilege create on the policy that declared the group role.
func (s *Server) addMember(c *call) reply {
	return s.member(c, "create", func(tx *store.Tx, m store.Membership) (reply, error) {
		if !tx.Exists(m.Member) {
			return notFound(policy.Ref(m.Member)), errRefused
		}
		if _, is, err := tx.Membership(m.Role, m.Member, false); err != nil || is {
			return empty(http.StatusNoContent), err
		}
		return empty(http.StatusNoContent), tx.PutMembership(m)
	})
}

// deleteMember removes a membership, whichever policy created it. The caller needs
// the privilege update on the policy that declared the group role.
func (s *Server) deleteMember(c *call) reply {
	return s.member(c, "update", func(tx *store.Tx, m store.Membership) (reply, error) {
		for _, ownership := range []bool{false, true} {
			if _, is, err := tx.Membership(m.Role, m.Member, ownership); err != nil || is {
				return empty(http.StatusNoContent), errors.Join(err, tx.DeleteMembership(m.Role, m.Member, ownership))
			}
		}
		return notFound(policy.Ref(m.Member)), errRefused
	})
}

// member changes a membership. The caller must see the role and have the privilege
// on its policy.
func (s *Server) member(c *call, privilege string, change func(*store.Tx, store.Membership) (reply, error)) reply {
	if !policy.IsRole(c.vars["kind"]) || !c.query.Has("members") {
		return noPath()
	}
	m := store.Membership{Role: string(c.resource()), Member: c.query.Get("member")}
	return s.change(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		o, err := tx.Object(m.Role)
		if err != nil {
			return reply{}, err
		}
		if o == nil || !tx.Visible(roles, m.Role, o) {
			return notFound(c.resource()), errRefused
		}
		in, err := tx.Object(o.Policy)
		if err != nil {
			return reply{}, err
		}
		allowed := in != nil && tx.Allowed(roles, privilege, o.Policy, in)
		s.audit.decided(c, c.r.Method+" member", c.role, m.Role, allowed)
		if !allowed {
			return forbidden(c), errRefused
		}
		return change(tx, m)
	})
}

// roleGraph lists the memberships in the role and in all roles above and below it. It
// omits those in roles that the caller may not see.
func roleGraph(tx *store.Tx, caller store.Roles, id string) (reply, error) {
	type edge struct {
		Parent string `json:"parent"`
		Child  string `json:"child"`
	}
	all := tx.RolesOf(id)
	for r := range tx.Holders(id) {
		all[r] = true
	}
	out := []edge{}
	for _, role := range sorted(all) {
		o, err := tx.Object(role)
		if err != nil {
			return reply{}, err
		}
		if o == nil || !tx.Visible(caller, role, o) {
			continue
		}
		for _, m := range tx.MembersOf(role) {
			out = append(out, edge{role, m})
		}
	}
	return jsonReply(http.StatusOK, out), nil
}

func sorted(roles store.Roles) []string {
	out := make([]string, 0, len(roles))
	for r := range roles {
		out = append(out, r)
	}
	slices.Sort(out)
	return out
}
