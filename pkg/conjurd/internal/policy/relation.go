package policy

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// reference reads a tagged id: "!user alice". A declaration with attributes
// stands for its id, as when an anchor names a list of declarations.
func reference(ns Namespace, v *yaml.Node) (Ref, error) {
	v = unalias(v)
	kind := strings.TrimPrefix(v.Tag, "!")
	if _, ok := attributes[kind]; !ok || !isTagged(v) {
		return "", placeOf(v).errorf("expected a tagged id such as !variable name")
	}
	id := v.Value
	if v.Kind == yaml.MappingNode {
		err := fields(placeOf(v), v, func(key string, _, v *yaml.Node) (err error) {
			if key == "id" {
				id, err = scalar(v)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	if id == "" && !mayOmitID(ns, kind) || strings.ContainsRune(id, 0) {
		return "", placeOf(v).errorf("!%s has no id", kind)
	}
	return ns.Resolve(kind, id), nil
}

func references(ns Namespace, v *yaml.Node) ([]Ref, error) { return each(ns, v, reference) }

// each reads all of a list.
func each(ns Namespace, v *yaml.Node, read func(Namespace, *yaml.Node) (Ref, error)) ([]Ref, error) {
	var out []Ref
	for _, item := range oneOrMany(v) {
		r, err := read(ns, item)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// role is a reference to something that can have privileges.
func role(ns Namespace, v *yaml.Node) (Ref, error) {
	r, err := reference(ns, v)
	if err == nil && !IsRole(r.Kind()) {
		return "", placeOf(unalias(v)).errorf("a %s is not a role", r.Kind())
	}
	return r, err
}

func roles(ns Namespace, v *yaml.Node) ([]Ref, error) { return each(ns, v, role) }

// grant reads !grant and !revoke.
func (p *parser) grant(ns Namespace, at place, n *yaml.Node) error {
	var g Grant
	err := fields(at, n, func(key string, k, v *yaml.Node) (err error) {
		switch key {
		case "role", "roles":
			g.Roles, err = roles(ns, v)
		case "member", "members":
			g.Members, err = members(ns, v)
		case "replace":
		default:
			err = placeOf(k).errorf("%s has no attribute '%s'", n.Tag, key)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(g.Roles) == 0 || len(g.Members) == 0 {
		return at.errorf("%s needs 'role' and 'member'", n.Tag)
	}
	if n.Tag == "!revoke" {
		p.out.Revokes = append(p.out.Revokes, g)
	} else {
		p.out.Grants = append(p.out.Grants, g)
	}
	return nil
}

// members reads roles, and !member with its admin option.
func members(ns Namespace, v *yaml.Node) ([]Member, error) {
	var out []Member
	for _, item := range oneOrMany(v) {
		m := Member{}
		var err error
		if item.Tag == "!member" && item.Kind == yaml.MappingNode {
			m, err = member(ns, item)
		} else {
			m.Role, err = role(ns, item)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func member(ns Namespace, n *yaml.Node) (m Member, err error) {
	err = fields(placeOf(n), n, func(key string, k, v *yaml.Node) (err error) {
		switch key {
		case "role":
			m.Role, err = role(ns, v)
		case "admin":
			m.Admin = v.Value == "true"
		default:
			err = placeOf(k).errorf("!member has no attribute '%s'", key)
		}
		return err
	})
	if err == nil && m.Role == "" {
		err = placeOf(n).errorf("!member needs 'role'")
	}
	return m, err
}

// permit reads !permit and !deny.
func (p *parser) permit(ns Namespace, at place, n *yaml.Node) error {
	var pm Permit
	err := fields(at, n, func(key string, k, v *yaml.Node) (err error) {
		switch key {
		case "role", "roles":
			pm.Roles, err = roles(ns, v)
		case "privilege", "privileges":
			pm.Privileges, err = scalars(v)
		case "resource", "resources":
			pm.Resources, err = references(ns, v)
		case "replace":
		default:
			err = placeOf(k).errorf("%s has no attribute '%s'", n.Tag, key)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(pm.Roles) == 0 || len(pm.Privileges) == 0 || len(pm.Resources) == 0 {
		return at.errorf("%s needs 'role', 'privileges' and 'resource'", n.Tag)
	}
	for _, priv := range pm.Privileges {
		if priv == "" || strings.ContainsRune(priv, 0) {
			return at.errorf("%s has an empty privilege", n.Tag)
		}
	}
	if n.Tag == "!deny" {
		p.out.Denies = append(p.out.Denies, pm)
	} else {
		p.out.Permits = append(p.out.Permits, pm)
	}
	return nil
}

// delete reads !delete.
func (p *parser) delete(ns Namespace, at place, n *yaml.Node) error {
	found := false
	err := fields(at, n, func(key string, k, v *yaml.Node) error {
		if key != "record" && key != "records" {
			return placeOf(k).errorf("!delete has no attribute '%s'", key)
		}
		refs, err := references(ns, v)
		p.out.Deletes = append(p.out.Deletes, refs...)
		found = found || len(refs) > 0
		return err
	})
	if err == nil && !found {
		err = at.errorf("!delete needs 'record'")
	}
	return err
}
