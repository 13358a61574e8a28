package policy

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// grant reads !grant and !revoke. A statement without a role or a member has no
// effect and is valid.
func (p *parser) grant(ns Namespace, at place, n *yaml.Node) error {
	var g Grant
	err := fields(at, n, func(key string, k, v *yaml.Node) (err error) {
		switch {
		case key == "role" || key == "roles":
			g.Roles, err = p.subjects(ns, "Role", "role", v)
		case key != "member" && key != "members":
			err = unknown(k, n.Tag)
		case n.Tag == "!revoke":
			g.Members, err = p.revoked(ns, v)
		default:
			g.Members, err = p.members(ns, v)
		}
		return err
	})
	if err != nil {
		return err
	}
	members := 0
	for _, m := range g.Members {
		members += len(m.Role)
	}
	err = p.count(at, len(g.Roles)*len(g.Members), length(g.Roles)*len(g.Members)+members*len(g.Roles))
	if err != nil {
		return err
	}
	if n.Tag == "!revoke" {
		p.out.Revokes = append(p.out.Revokes, g)
	} else {
		p.out.Grants = append(p.out.Grants, g)
	}
	return nil
}

// members reads roles, and !member with its admin option.
func (p *parser) members(ns Namespace, v *yaml.Node) ([]Member, error) {
	return each(v, func(item *yaml.Node) (m Member, err error) {
		if item.Kind == yaml.MappingNode && (item.Tag == "!member" || !isTagged(item)) {
			return p.member(ns, item)
		}
		m.Role, err = p.role(ns, "Member", "member", item)
		return m, err
	})
}

func (p *parser) member(ns Namespace, n *yaml.Node) (m Member, err error) {
	err = fields(placeOf(n), n, func(key string, k, v *yaml.Node) (err error) {
		switch key {
		case "role":
			m.Role, err = p.role(ns, "Role", key, v)
		case "admin":
			m.Admin, err = boolean(key, v)
		default:
			err = unknown(k, "member")
		}
		return err
	})
	if err == nil && m.Role == "" {
		err = placeOf(n).errorf("!member needs 'role'")
	}
	return m, err
}

// revoked reads the members of a !revoke, which have no options.
func (p *parser) revoked(ns Namespace, v *yaml.Node) ([]Member, error) {
	return each(v, func(item *yaml.Node) (m Member, err error) {
		m.Role, err = p.role(ns, "Role", "member", item)
		return m, err
	})
}

// permit reads !permit and !deny. As in a grant, all attributes may be missing.
func (p *parser) permit(ns Namespace, at place, n *yaml.Node) error {
	var pm Permit
	err := fields(at, n, func(key string, k, v *yaml.Node) (err error) {
		switch key {
		case "role", "roles":
			pm.Roles, err = each(v, func(item *yaml.Node) (Ref, error) { return p.role(ns, "Role", "role", item) })
		case "privilege", "privileges":
			pm.Privileges, err = texts("privilege", v)
		case "resource", "resources":
			if isNull(v) {
				return at.blank("resource")
			}
			pm.Resources, err = p.subjects(ns, "Resource", "resource", v)
		default:
			err = unknown(k, n.Tag)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, priv := range pm.Privileges {
		if strings.ContainsRune(priv, 0) {
			return at.errorf("%s has a privilege with a null byte", n.Tag)
		}
		if len(priv) > maxID {
			return at.errorf("%s has a privilege of %d bytes; at most %d are possible", n.Tag, len(priv), maxID)
		}
	}
	r, v, o := len(pm.Roles), len(pm.Privileges), len(pm.Resources)
	err = p.count(at, r*v*o, length(pm.Roles)*v*o+length(pm.Privileges)*r*o+length(pm.Resources)*r*v)
	if err != nil {
		return err
	}
	if n.Tag == "!deny" {
		p.out.Denies = append(p.out.Denies, pm)
	} else {
		p.out.Permits = append(p.out.Permits, pm)
	}
	return nil
}

// delete reads !delete, which takes one record under any attribute name.
func (p *parser) delete(ns Namespace, at place, n *yaml.Node) error {
	found := false
	err := fields(at, n, func(key string, k, v *yaml.Node) error {
		switch {
		case key != "record" && key != "records":
			return unknown(k, n.Tag)
		case v.Kind == yaml.SequenceNode && !isTagged(v):
			return placeOf(v).errorf("!delete takes one record: write one statement for each")
		}
		ref, err := p.subject(ns, "Resource", "record", v)
		p.out.Deletes = append(p.out.Deletes, ref)
		found = true
		return err
	})
	if err == nil && !found {
		err = at.errorf("!delete needs 'record'")
	}
	return err
}
