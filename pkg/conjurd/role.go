package conjurd

import (
	"errors"
	"net/http"
	"slices"

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
		if o == nil || !roles[id] && !tx.Visible(roles, id, o) {
			return notFound(c.resource()), nil
		}
		switch {
		case c.query.Has("all"):
			return jsonReply(http.StatusOK, sorted(tx.RolesOf(id))), nil
		case c.query.Has("memberships"):
			return listMemberships(tx.Memberships(id))
		case c.query.Has("members"):
			return listMemberships(tx.Members(id))
		case c.query.Has("graph"):
			return roleGraph(tx, id)
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

func listMemberships(list []store.Membership, err error) (reply, error) {
	return jsonReply(http.StatusOK, membershipsJSON(list)), err
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
		if o == nil || !roles[m.Role] && !tx.Visible(roles, m.Role, o) {
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

// roleGraph lists the memberships among the role and all roles above and below it.
func roleGraph(tx *store.Tx, id string) (reply, error) {
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
		for _, m := range tx.MembersOf(role) {
			if all[m] || tx.RolesOf(id)[role] {
				out = append(out, edge{role, m})
			}
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
