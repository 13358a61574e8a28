package policy

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// path returns the id of a record or reference relative to its policy. Each node
// has exactly one.
func (p *parser) path(ns Namespace, kind string, at place, n *yaml.Node, id string) (string, error) {
	if path, ok := p.paths[n]; ok {
		return path, nil
	}
	if strings.ContainsRune(id, 0) {
		return "", at.errorf("the id of !%s contains a null byte", kind)
	}
	path := ns.join(id)
	if len(path) > maxID {
		return "", at.errorf("the id of !%s has %d bytes, with that of its policy; at most %d are possible", kind, len(path), maxID)
	}
	if path == "" {
		return "", at.blank(strings.ReplaceAll(kind, "-", "_"))
	}
	p.paths[n] = path
	return path, nil
}

func (p place) blank(kind string) error {
	err := p.bare("%s has a blank id", kind)
	err.Hint = "Each resource must be identified using the 'id' field"
	return err
}

// fixed returns the name of an object that is declared, granted, permitted or
// deleted. The object lies in the branch, so its path must be relative.
func fixed(ns Namespace, kind string, at place, path string) (Ref, error) {
	switch {
	case isAbsolute(path):
		return "", at.bare("Illegal absolute id: %s", path)
	case kind == "user" && hasClimb(path):
		return "", at.bare("Invalid relative reference: %s", path)
	}
	return ns.ref(kind, path), nil
}

// reference reads a tagged id: "!user alice". A declaration with attributes counts
// as its id, because an anchor may name a list of declarations. The object must be
// of the wanted type, "Role", "Member" or "Resource". attribute appears in the
// error.
func (p *parser) reference(ns Namespace, want, attribute string, v *yaml.Node) (kind, path string, err error) {
	v = unalias(v)
	at := placeOf(v)
	if !isTagged(v) {
		return "", "", at.expected(want, attribute, valueOf(v).class)
	}
	kind = kindOf(v.Tag)
	_, record := attributes[kind]
	if !record && v.Tag != "!member" && !slices.Contains(tags, v.Tag) {
		return "", "", at.unrecognized(v.Tag)
	}
	if !record || want != "Resource" && !IsRole(kind) {
		return "", "", at.expected(want, attribute, className(kind))
	}
	d := declaration{p: p, ns: ns, kind: kind, at: at}
	if err := d.readNode(v); err != nil {
		return "", "", err
	}
	path, err = p.path(ns, kind, at, v, d.id)
	return kind, path, err
}

// subject reads the object of a statement.
func (p *parser) subject(ns Namespace, want, attribute string, v *yaml.Node) (Ref, error) {
	kind, path, err := p.reference(ns, want, attribute, v)
	if err != nil {
		return "", err
	}
	ref, err := fixed(ns, kind, placeOf(unalias(v)), path)
	p.mention(ref, v)
	return ref, err
}

// mention notes the first place of a reference.
func (p *parser) mention(ref Ref, v *yaml.Node) {
	if _, noted := p.out.mentions[ref]; !noted {
		p.out.mentions[ref] = placeOf(unalias(v))
	}
}

// subjects reads one object of a statement, or a list.
func (p *parser) subjects(ns Namespace, want, attribute string, v *yaml.Node) ([]Ref, error) {
	return each(v, func(item *yaml.Node) (Ref, error) { return p.subject(ns, want, attribute, item) })
}

// layers reads the layers of a host factory.
func (p *parser) layers(ns Namespace, v *yaml.Node) ([]Ref, error) {
	return each(v, func(item *yaml.Node) (Ref, error) {
		ref, err := p.subject(ns, "Role", "layer", item)
		if err == nil && ref.Kind() != "layer" {
			err = placeOf(unalias(item)).expected("Layer", "layers", className(ref.Kind()))
		}
		return ref, err
	})
}

// role reads an owner, a member, or the holder of a privilege. Its path may be
// absolute, or lead to a parent policy by "..".
func (p *parser) role(ns Namespace, want, attribute string, v *yaml.Node) (Ref, error) {
	kind, path, err := p.reference(ns, want, attribute, v)
	if err != nil {
		return "", err
	}
	climbed, ok := climb(path)
	if !ok {
		return "", placeOf(unalias(v)).bare("Invalid relative reference: %s", strings.TrimPrefix(path, "/"))
	}
	ref := ns.ref(kind, climbed)
	p.mention(ref, v)
	return ref, nil
}
