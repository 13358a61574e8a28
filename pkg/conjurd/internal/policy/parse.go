package policy

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Parse parses a text that is loaded into the branch of ns. Every error is an
// *Error. The statements are in the order of the text.
func Parse(ns Namespace, text []byte) (*Statements, error) {
	if err := bound(text); err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		err := yaml.Unmarshal(text, &yaml.Node{}) // its error names the invalid octet
		return nil, syntaxError(cmp.Or(err, errors.New("invalid UTF-8")), nil)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	p := parser{out: &Statements{mentions: map[Ref]place{}}, owners: map[Ref]Ref{ns.Standing("policy"): ""}, paths: map[*yaml.Node]string{}, seen: map[*yaml.Node]bool{}}
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return p.out, nil
	case err != nil:
		return nil, syntaxError(err, bytes.Split(text, []byte("\n")))
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		// Here the genuine server counts lines from 0, and columns to the end of
		// the marker.
		return nil, place{more.Line - 1, len("---")}.errorf("Multiple YAML documents encountered. Only a single document is permitted per policy.")
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(err, bytes.Split(text, []byte("\n")))
	}
	if unfolded(&doc, map[*yaml.Node]int{}) > maxNodes {
		return nil, tooLong(placeOf(&doc))
	}
	switch top := doc.Content[0]; top.Kind {
	case yaml.SequenceNode:
		return p.out, p.readStatements(ns, top, 0)
	case yaml.MappingNode:
		return nil, keyOf(top).errorf("Unexpected mapping")
	default:
		if top.Value == "" && isNull(top) { // an empty document
			return p.out, nil
		}
		return nil, placeOf(&doc).errorf("Unexpected scalar")
	}
}

// tags lists the tags of the language, as the genuine server prints them.
var tags = []string{
	"!delete", "!deny", "!grant", "!group", "!host", "!host-factory", "!layer", "!permit", "!policy", "!revoke",
	"!user", "!variable", "!webservice",
}

// parser collects statements while it walks the nodes. A node that several aliases
// share is one object. It is declared once, with the id of its first occurrence.
type parser struct {
	out    *Statements
	owners map[Ref]Ref           // declared object → its owner
	paths  map[*yaml.Node]string // record or reference → its id relative to its policy
	seen   map[*yaml.Node]bool   // statements
	items  int
}

// readStatements reads a list of statements and flattens nested lists.
func (p *parser) readStatements(ns Namespace, list *yaml.Node, depth int) error {
	if depth > maxDepth {
		return placeOf(list).errorf("the policy is nested too deeply")
	}
	for _, item := range list.Content {
		at := placeIn(list, item)
		item = unalias(item)
		err := p.count(at, 1, 0)
		if err != nil {
			return err
		}
		if item.Kind == yaml.SequenceNode && !isTagged(item) {
			err = p.readStatements(ns, item, depth+1)
		} else {
			err = p.statement(ns, at, item, depth)
		}
		if err != nil {
			return at.within(err)
		}
	}
	return nil
}

// statement reads one tagged item.
func (p *parser) statement(ns Namespace, at place, n *yaml.Node, depth int) error {
	if p.seen[n] {
		return nil
	}
	p.seen[n] = true
	tag := n.Tag
	switch tag {
	case "!grant", "!revoke":
		return p.grant(ns, at, n)
	case "!permit", "!deny":
		return p.permit(ns, at, n)
	case "!delete":
		return p.delete(ns, at, n)
	}
	if !isTagged(n) && n.Kind == yaml.MappingNode {
		err := keyOf(n).errorf("No type given or inferred for sequence entry")
		err.Hint = "Begin the statement with a tag such as !variable"
		return err
	}
	if !isTagged(n) {
		return at.errorf("the statement has no tag such as !variable")
	}
	kind := kindOf(tag)
	if _, ok := attributes[kind]; !ok {
		return at.unrecognized(tag)
	}
	return p.record(ns, kind, at, n, depth)
}

func (p place) unrecognized(tag string) error {
	err := p.errorf("Unrecognized data type '%s'", tag)
	err.Hint = "The tag must be one of the following: " + strings.Join(tags, ", ")
	return err
}

// unalias resolves *name to the node of &name.
func unalias(n *yaml.Node) *yaml.Node {
	for i := 0; n.Kind == yaml.AliasNode && i < maxDepth; i++ {
		n = n.Alias
	}
	return n
}

// isTagged reports whether the text gives n an explicit tag: !x and not !!str.
func isTagged(n *yaml.Node) bool {
	return strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!")
}

// isNull reports whether a value is missing.
func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && !isTagged(n) && valueOf(n).class == "NilClass"
}

// kindOf returns the kind for a tag: "host_factory" for "!host-factory".
func kindOf(tag string) string {
	return strings.ReplaceAll(strings.TrimPrefix(tag, "!"), "-", "_")
}

// unknown returns the error for an attribute that the tag does not support.
func unknown(k *yaml.Node, tag string) error {
	return placeOf(k).errorf("No such attribute '%s' on type %s", k.Value, className(tag))
}

// fields calls f for each key and value of a mapping.
func fields(at place, n *yaml.Node, f func(key string, k, v *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return at.errorf("%s needs attributes, such as 'role: ...'", n.Tag)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := unalias(n.Content[i]), unalias(n.Content[i+1])
		if seen[k.Value] {
			return placeOf(k).errorf("Duplicate attribute: %s", k.Value)
		}
		seen[k.Value] = true
		if err := f(k.Value, k, v); err != nil {
			return err
		}
	}
	return nil
}

// each reads the items of a list, or a single value. A missing value yields no
// items. It flattens nested lists, which anchors produce.
func each[T any](v *yaml.Node, read func(*yaml.Node) (T, error)) ([]T, error) {
	if isNull(unalias(v)) {
		return nil, nil
	}
	visits := 0
	items, err := flatten(nil, v, 0, &visits)
	var out []T
	for _, item := range items {
		x, err := read(item)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, err
}

func flatten(out []*yaml.Node, v *yaml.Node, depth int, visits *int) (_ []*yaml.Node, err error) {
	v = unalias(v)
	if v.Kind != yaml.SequenceNode || isTagged(v) {
		return append(out, v), nil
	}
	if depth > maxDepth {
		return nil, placeOf(v).errorf("the list is nested too deeply")
	}
	for _, item := range v.Content {
		if *visits++; *visits > maxItems {
			return nil, placeOf(v).errorf("the list has too many items")
		}
		if out, err = flatten(out, item, depth+1, visits); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Limits on the expansion of one text. With anchors a short text can repeat the
// same list many times. One statement can relate many roles to many resources.
const (
	maxItems = 200_000   // statements, memberships, permissions, and items of records
	itemSize = 512       // bytes of text that count as one item more
	maxNodes = 4_000_000 // items of all lists and mappings
	maxDepth = 64
	maxID    = 2 << 10 // bytes; the genuine server's database accepts a little more
)

// bound checks a text before it is parsed, because each node takes many times the
// memory of its text.
func bound(text []byte) *Error {
	marks := 0
	for _, mark := range []string{"\n", ",", ":", "- ", "[", "{"} {
		marks += bytes.Count(text, []byte(mark))
	}
	if marks > 2*maxNodes {
		return tooLong(place{1, 0})
	}
	return nil
}

func tooLong(at place) *Error {
	return at.errorf("the policy is too long: split it into several of at most %d statements, memberships, permissions and annotations, of which long ones count several times", maxItems)
}

// unfolded returns the number of nodes in n after all aliases are expanded. It
// stops counting beyond maxNodes. sizes caches the size of each alias target.
func unfolded(n *yaml.Node, sizes map[*yaml.Node]int) int {
	if n.Kind == yaml.AliasNode {
		size, ok := sizes[n.Alias]
		if !ok {
			sizes[n.Alias] = maxNodes + 1 // for an anchor inside its own value
			size = unfolded(n.Alias, sizes)
			sizes[n.Alias] = size
		}
		return size
	}
	total := 1
	for _, child := range n.Content {
		if total += unfolded(child, sizes); total > maxNodes {
			break
		}
	}
	return total
}

// count adds n statements, memberships, permissions or items of records. bytes is the
// length of their names and texts together, which anchors can repeat.
func (p *parser) count(at place, n, bytes int) error {
	if p.items += n + bytes/itemSize; p.items > maxItems {
		return tooLong(at)
	}
	return nil
}

// length returns the length of all texts together.
func length[T ~string](list []T) (n int) {
	for _, s := range list {
		n += len(s)
	}
	return n
}

// countRecord counts the items of a record.
func (p *parser) countRecord(at place, r *Record) error {
	size := length(r.RestrictedTo) + length(r.PublicKeys) + length(r.Layers)
	for _, a := range r.Annotations {
		size += len(a.Name) + len(a.Value)
	}
	return p.count(at, len(r.Annotations)+len(r.RestrictedTo)+len(r.PublicKeys)+len(r.Layers), size)
}
