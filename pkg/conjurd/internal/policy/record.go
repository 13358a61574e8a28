package policy

import (
	"fmt"
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"
)

// attributes lists the attributes of each kind of record, besides the common ones.
var attributes = map[string][]string{
	"policy":       {"body"},
	"user":         {"uidnumber", "public_key", "public_keys", "restricted_to"},
	"host":         {"restricted_to"},
	"group":        {"gidnumber"},
	"layer":        nil,
	"variable":     {"kind", "mime_type"},
	"webservice":   nil,
	"host_factory": {"layer", "layers"},
}

// common lists the attributes of every kind.
var common = []string{"id", "owner", "annotations"}

// known lists the names that cause a warning when they are used as annotations.
var known = []string{
	"annotations", "body", "id", "kind", "mime_type", "owner", "public_key",
	"public_keys", "restricted_to", "uidnumber", "gidnumber",
}

// record reads a declaration: a bare id, or attributes.
func (p *parser) record(ns Namespace, kind string, at place, n *yaml.Node, depth int) error {
	d := declaration{p: p, ns: ns, kind: kind, at: at}
	if err := d.readNode(n); err != nil {
		return err
	}
	path, err := p.path(ns, kind, at, n, d.id)
	if err != nil {
		return err
	}
	rec, err := d.record(path)
	if err != nil {
		return err
	}
	if err := p.countRecord(at, &rec); err != nil {
		return err
	}
	if _, twice := p.owners[rec.ID]; twice {
		err := at.bare("%s '%s' is declared more than once", kind, rec.ID.ID())
		err.Genuine = missingOption
		return err
	}
	if rec.Owner != rec.ID && p.owners[rec.Owner] == rec.ID { // an ownership cycle
		err := at.bare("%s and %s own each other", rec.ID.Title(), rec.Owner.Title())
		err.Genuine = missingOption
		return err
	}
	p.owners[rec.ID] = rec.Owner
	p.out.Records = append(p.out.Records, rec)
	p.warn(rec)
	if d.body == nil {
		return nil
	}
	return p.readStatements(Namespace{ns.Account, rec.ID.ID()}, d.body, depth+1)
}

// missingOption is the genuine server's message in places where its error handling
// fails.
const missingOption = "Missing required option account"

func (p *parser) warn(rec Record) {
	for _, a := range rec.Annotations {
		if slices.Contains(known, a.Name) {
			p.out.Warnings = append(p.out.Warnings, fmt.Sprintf("Annotation '%s' matches a known policy attribute. "+
				"This annotation will not be treated as a standard attribute and may not have the intended effect.", a.Name))
		}
	}
}

// declaration collects a record's attributes.
type declaration struct {
	p    *parser
	ns   Namespace
	kind string
	at   place

	id          string
	owner       Ref
	annotations []Annotation
	implied     []Annotation // attributes that are stored as annotations
	restricted  []string
	keys        []string
	layers      []Ref
	body        *yaml.Node
}

// readNode reads the node of a declaration, or a reference in its place.
func (d *declaration) readNode(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		d.id = n.Value
		return nil
	}
	return fields(d.at, n, d.attribute)
}

// attribute reads one attribute.
func (d *declaration) attribute(key string, k, v *yaml.Node) (err error) {
	if !slices.Contains(common, key) && !slices.Contains(attributes[d.kind], key) {
		return unknown(k, d.kind)
	}
	switch key {
	case "id":
		d.id, err = stringAttribute(key, v)
	case "owner":
		if !isNull(v) {
			d.owner, err = d.p.role(d.ns, "Role", key, v)
		}
	case "annotations":
		d.annotations, err = annotations(v)
	case "restricted_to":
		d.restricted, err = networks(key, v)
	case "public_key", "public_keys":
		d.keys, err = texts(key, v)
	case "layer", "layers":
		d.layers, err = d.p.layers(d.ns, v)
	case "body":
		d.body, err = body(v)
	case "uidnumber", "gidnumber":
		err = d.imply(key, v, integer)
	default: // kind, mime_type
		err = d.imply(key, v, stringAttribute)
	}
	return err
}

// imply stores an attribute as an annotation.
func (d *declaration) imply(key string, v *yaml.Node, read func(string, *yaml.Node) (string, error)) error {
	s, err := read(key, v)
	if s != "" {
		d.implied = append(d.implied, Annotation{"conjur/" + key, s})
	}
	return err
}

// record validates and returns the complete record.
func (d *declaration) record(path string) (Record, error) {
	id, err := fixed(d.ns, d.kind, d.at, path)
	if err != nil {
		return Record{}, err
	}
	if d.kind == "host_factory" && len(d.layers) == 0 {
		return Record{}, d.at.bare("Host factory '%s' does not include any layers", id.ID())
	}
	rec := Record{ID: id, Owner: d.owner, RestrictedTo: d.restricted, PublicKeys: d.keys, Layers: d.layers}
	for _, a := range d.implied { // explicit annotations take precedence
		if !slices.ContainsFunc(d.annotations, func(b Annotation) bool { return b.Name == a.Name }) {
			rec.Annotations = append(rec.Annotations, a)
		}
	}
	for _, a := range d.annotations {
		if hasClimb(a.Value) {
			var ok bool
			if a.Value, ok = climb(path + "/" + a.Value); !ok {
				return Record{}, d.at.bare("Invalid relative reference: the annotation '%s' leads out of the root", a.Name)
			}
		}
		rec.Annotations = append(rec.Annotations, a)
	}
	if rec.Owner == "" {
		rec.Owner = d.ns.Owner()
	}
	return rec, nil
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
	if v.Kind != yaml.MappingNode {
		return nil, placeOf(v).expected("hash", "annotations", classString)
	}
	var out []Annotation
	err := fields(placeOf(v), v, func(key string, _, v *yaml.Node) error {
		text, err := annotation(key, v)
		out = append(out, Annotation{key, text})
		return err
	})
	return out, err
}

// networks reads one CIDR range or address, or a list of them.
func networks(attribute string, v *yaml.Node) ([]string, error) {
	list, err := texts(attribute, v)
	if err != nil {
		return nil, err
	}
	for i, s := range list {
		network, fault := ParseNetwork(s)
		if fault != "" {
			return nil, placeOf(v).errorf("%s", fault)
		}
		list[i] = network
	}
	return list, nil
}

// ParseNetwork returns the CIDR range in s. An address becomes a network of a single
// address. The fault is the genuine server's message, or empty.
func ParseNetwork(s string) (network, fault string) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		return netip.PrefixFrom(addr, addr.BitLen()).String(), ""
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return "", fmt.Sprintf("Invalid IP address or CIDR range '%s'", s)
	}
	if p != p.Masked() {
		return "", fmt.Sprintf("Invalid IP address or CIDR range '%s': Value has bits set to right of mask. Did you mean '%s'?", s, p.Masked())
	}
	return p.String(), ""
}
