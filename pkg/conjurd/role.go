package conjurd

import (
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

// showRole describes a role, or lists what it belongs to or who belongs to it.
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

// roleGraph lists the memberships among all above and below the role.
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
