package conjurd

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/secretsync/syncer/pkg/conjurd/internal/policy"
	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// kinds lists the kinds that a path may name.
var kinds = []string{
	"policy", "user", "host", "group", "layer", "variable", "webservice", "host_factory", "public_key", "configuration",
}

// resourceJSON is the JSON form of a resource.
type resourceJSON struct {
	CreatedAt      stamp            `json:"created_at"`
	ID             string           `json:"id"`
	Owner          string           `json:"owner"`
	Policy         string           `json:"policy,omitempty"`
	Permissions    []permissionJSON `json:"permissions"`
	Annotations    []annotationJSON `json:"annotations"`
	Secrets        *[]versionJSON   `json:"secrets,omitempty"`
	PolicyVersions *[]policyJSON    `json:"policy_versions,omitempty"`
	RestrictedTo   *[]string        `json:"restricted_to,omitempty"`
}

type permissionJSON struct {
	Privilege string `json:"privilege"`
	Role      string `json:"role"`
	Policy    string `json:"policy,omitempty"`
}

type annotationJSON struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Policy string `json:"policy"`
}

type versionJSON struct {
	Version   uint64  `json:"version"`
	ExpiresAt *string `json:"expires_at"`
}

type policyJSON struct {
	Version    uint64 `json:"version"`
	CreatedAt  stamp  `json:"created_at"`
	Text       string `json:"policy_text"`
	SHA256     string `json:"policy_sha256"`
	FinishedAt stamp  `json:"finished_at"`
	ClientIP   string `json:"client_ip"`
	ID         string `json:"id"`
	Role       string `json:"role"`
}

// describe collects everything about a resource except its secrets.
func describe(tx *store.Tx, id string, o *store.Object) (resourceJSON, error) {
	res := resourceJSON{
		CreatedAt: stamp(o.CreatedAt), ID: id, Owner: o.Owner, Policy: o.Policy,
		Permissions: []permissionJSON{}, Annotations: []annotationJSON{},
	}
	for _, p := range tx.Permissions(id) {
		res.Permissions = append(res.Permissions, permissionJSON{p.Privilege, p.Role, p.Policy})
	}
	for _, a := range o.Annotations {
		res.Annotations = append(res.Annotations, annotationJSON(a))
	}
	switch policy.Ref(id).Kind() {
	case "variable":
		list := []versionJSON{}
		for _, v := range tx.Versions(id) {
			list = append(list, versionJSON{Version: v})
		}
		res.Secrets = &list
	case "policy":
		return res, describePolicy(tx, &res)
	case "user", "host":
		cred, err := tx.Credentials(id)
		if err != nil || cred == nil {
			return res, err
		}
		list := append([]string{}, cred.RestrictedTo...)
		res.RestrictedTo = &list
	}
	return res, nil
}

func describePolicy(tx *store.Tx, res *resourceJSON) error {
	versions, err := tx.PolicyVersions(res.ID)
	list := []policyJSON{}
	for _, v := range versions {
		list = append(list, policyJSON{
			Version: v.Version, CreatedAt: stamp(v.CreatedAt), Text: v.Text, SHA256: v.SHA256,
			FinishedAt: stamp(v.FinishedAt), ClientIP: v.ClientIP, ID: res.ID, Role: v.Role,
		})
	}
	res.PolicyVersions = &list
	return err
}

// showResource describes one resource, or checks a privilege on it, or lists
// who has that privilege.
func (s *Server) showResource(c *call) reply {
	if !slices.Contains(kinds, c.vars["kind"]) {
		return noPath()
	}
	return s.snapshot(c, func(tx *store.Tx, roles store.Roles) (reply, error) {
		id := string(c.resource())
		if c.query.Has("check") {
			return s.checkPrivilege(c, tx, roles, id)
		}
		o, err := tx.Object(id)
		if err != nil {
			return reply{}, err
		}
		if o == nil || !tx.Visible(roles, id, o) {
			return notFound(c.resource()), nil
		}
		if c.query.Has("permitted_roles") {
			privilege := cmp.Or(c.query.Get("privilege"), c.query.Get("permission"))
			if privilege == "" {
				return badArgument("privilege"), nil
			}
			return jsonReply(http.StatusOK, permittedRoles(tx, id, o, privilege)), nil
		}
		res, err := describe(tx, id, o)
		return jsonReply(http.StatusOK, res), err
	})
}

// checkPrivilege answers 204 or 404.
func (s *Server) checkPrivilege(c *call, tx *store.Tx, roles store.Roles, id string) (reply, error) {
	if !c.query.Has("privilege") {
		return badArgument("privilege"), nil
	}
	if c.query.Get("role") != "" {
		other := fullRole(c, c.query.Get("role"))
		if !roles[other] {
			return forbidden(c), nil
		}
		roles = tx.RolesOf(other)
	}
	o, err := tx.Object(id)
	if err != nil {
		return reply{}, err
	}
	if o == nil || !tx.Visible(roles, id, o) {
		return notFound(c.resource()), nil
	}
	allowed := tx.Allowed(roles, c.query.Get("privilege"), id, o)
	s.audit.decided(c, "check", c.role, id, allowed)
	if !allowed {
		return empty(http.StatusNotFound), nil
	}
	return empty(http.StatusNoContent), nil
}

// permittedRoles lists the roles that have the privilege: its direct holders, the
// owner, and the members of both.
func permittedRoles(tx *store.Tx, id string, o *store.Object, privilege string) []string {
	var list []string
	for _, p := range tx.Permissions(id) {
		if p.Privilege == privilege {
			list = append(list, p.Role)
		}
	}
	list = append(list, o.Owner)
	seen := map[string]bool{}
	out := []string{}
	for i := 0; i < len(list); i++ {
		if seen[list[i]] {
			continue
		}
		seen[list[i]] = true
		out = append(out, list[i])
		list = append(list, tx.MembersOf(list[i])...)
	}
	return out
}
