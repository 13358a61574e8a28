package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// attributes of each kind of record, besides those that all have.
var attributes = map[string][]string{
	"policy":     {"body"},
	"user":       {"uidnumber", "public_key", "public_keys", "restricted_to"},
	"host":       {"restricted_to"},
	"group":      {"gidnumber"},
	"layer":      nil,
	"variable":   {"kind", "mime_type"},
	"webservice": nil,
}

// common are the attributes of every kind.
var common = []string{"id", "owner", "annotations"}

// known are the names that draw a warning as an annotation.
var known = []string{
	"annotations", "body", "id", "kind", "mime_type", "owner", "public_key",
	"public_keys", "restricted_to", "uidnumber", "gidnumber",
}

// record reads a declaration: a bare id, or attributes.
func (p *parser) record(ns Namespace, kind string, at place, n *yaml.Node, depth int) error {
	d := declaration{ns: ns, kind: kind, at: at}
	if n.Kind == yaml.ScalarNode {
		d.id = n.Value
	} else if err := fields(at, n, d.attribute); err != nil {
		return err
	}
	rec, err := d.record()
	if err != nil {
		return err
	}
	if p.declared[rec.ID] {
		return at.errorf("%s '%s' is declared more than once", kind, rec.ID.ID())
	}
	p.declared[rec.ID] = true
	p.out.Records = append(p.out.Records, rec)
	p.warn(rec)
	if d.body == nil {
		return nil
	}
	return p.list(Namespace{ns.Account, rec.ID.ID()}, d.body, depth+1)
}

func (p *parser) warn(rec Record) {
	for _, a := range rec.Annotations {
		if slices.Contains(known, a.Name) {
			p.out.Warnings = append(p.out.Warnings, fmt.Sprintf("Annotation '%s' matches a known policy attribute. "+
				"This annotation will not be treated as a standard attribute and may not have the intended effect.", a.Name))
		}
	}
}

// declaration gathers a record's attributes.
type declaration struct {
	ns   Namespace
	kind string
	at   place

	id          string
	owner       Ref
	annotations []Annotation
	implied     []Annotation // attributes that are kept as annotations
	restricted  []string
	keys        []string
	body        *yaml.Node
}

// attribute takes in one of them.
func (d *declaration) attribute(key string, k, v *yaml.Node) (err error) {
	if !slices.Contains(common, key) && !slices.Contains(attributes[d.kind], key) {
		return placeOf(k).errorf("!%s has no attribute '%s'", d.kind, key)
	}
	switch key {
	case "id":
		d.id, err = scalar(v)
	case "owner":
		d.owner, err = role(d.ns, v)
	case "annotations":
		d.annotations, err = annotations(v)
	case "restricted_to":
		d.restricted, err = networks(v)
	case "public_key", "public_keys":
		d.keys, err = scalars(v)
	case "body":
		d.body, err = body(v)
	default: // kind, mime_type, uidnumber, gidnumber
		var text string
		text, err = scalar(v)
		d.implied = append(d.implied, Annotation{"conjur/" + key, text})
	}
	return err
}

// record is the whole, checked.
func (d *declaration) record() (Record, error) {
	if d.id == "" && !mayOmitID(d.ns, d.kind) {
		return Record{}, d.at.errorf("!%s has no id", d.kind)
	}
	if strings.ContainsRune(d.id, 0) {
		return Record{}, d.at.errorf("the id of !%s contains a null byte", d.kind)
	}
	rec := Record{
		ID:           d.ns.Resolve(d.kind, d.id),
		Owner:        d.owner,
		OwnerGiven:   d.owner != "",
		Annotations:  append(d.implied, d.annotations...),
		RestrictedTo: d.restricted,
		PublicKeys:   d.keys,
	}
	if rec.ID.ID() == "" {
		return Record{}, d.at.errorf("!%s has no id", d.kind)
	}
	if rec.Owner == "" {
		rec.Owner = d.ns.Owner()
	}
	return rec, nil
}

// mayOmitID is for what can stand for a whole policy.
func mayOmitID(ns Namespace, kind string) bool {
	return ns.Policy != "" && kind != "user" && kind != "policy"
}

func body(v *yaml.Node) (*yaml.Node, error) {
	if isNull(v) {
		return nil, nil
	}
	if v.Kind != yaml.SequenceNode {
		return nil, placeOf(v).errorf("a policy's body is a list of statements")
	}
	return v, nil
}

func annotations(v *yaml.Node) ([]Annotation, error) {
	if isNull(v) {
		return nil, nil
	}
	var out []Annotation
	err := fields(placeOf(v), v, func(key string, _, v *yaml.Node) error {
		text, err := scalar(v)
		out = append(out, Annotation{key, text})
		return err
	})
	return out, err
}

// networks reads addresses and CIDR ranges, one or a list.
func networks(v *yaml.Node) ([]string, error) {
	list, err := scalars(v)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if _, err := netip.ParsePrefix(s); err == nil {
			continue
		}
		if _, err := netip.ParseAddr(s); err != nil {
			return nil, placeOf(v).errorf("Invalid IP address or CIDR range '%s'", s)
		}
	}
	return list, nil
}

func scalar(v *yaml.Node) (string, error) {
	if v.Kind != yaml.ScalarNode {
		return "", placeOf(v).errorf("expected a single value")
	}
	return v.Value, nil
}

func scalars(v *yaml.Node) ([]string, error) {
	var out []string
	for _, item := range oneOrMany(v) {
		s, err := scalar(item)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// oneOrMany is the items of a list, or the one value in its place. Lists in
// the list, which anchors bring about, are part of it.
func oneOrMany(v *yaml.Node) []*yaml.Node {
	visits := 0
	return flatten(nil, v, 0, &visits)
}

func flatten(out []*yaml.Node, v *yaml.Node, depth int, visits *int) []*yaml.Node {
	v = unalias(v)
	if v.Kind != yaml.SequenceNode || isTagged(v) || depth > maxDepth {
		return append(out, v)
	}
	for _, item := range v.Content {
		if *visits++; *visits > maxItems {
			break
		}
		out = flatten(out, item, depth+1, visits)
	}
	return out
}
