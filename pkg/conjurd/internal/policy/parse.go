package policy

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Bounds on what one text may unfold to: anchors let a short text name the
// same list over and over.
const (
	maxItems = 1_000_000
	maxDepth = 64
)

// Parse reads a text that is loaded into the branch of ns. Its only error is
// an *Error. What the text declares is in the order of the text.
func Parse(ns Namespace, text []byte) (*Statements, error) {
	if !utf8.Valid(text) {
		return nil, &Error{Line: 1, Syntax: true, Message: "invalid UTF-8"}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, syntaxError(err)
	}
	p := parser{out: &Statements{}, declared: map[Ref]bool{}}
	if len(doc.Content) == 0 || isNull(doc.Content[0]) {
		return p.out, nil
	}
	if doc.Content[0].Kind != yaml.SequenceNode {
		return nil, placeOf(doc.Content[0]).errorf("a policy is a list of statements")
	}
	if err := p.list(ns, doc.Content[0], 0); err != nil {
		return nil, err
	}
	return p.out, nil
}

// tags are those of the language, in the words of the genuine server.
var tags = []string{
	"!delete", "!deny", "!grant", "!group", "!host", "!host-factory", "!layer", "!permit", "!policy", "!revoke",
	"!user", "!variable", "!webservice",
}

// parser gathers statements while it walks the nodes.
type parser struct {
	out      *Statements
	declared map[Ref]bool
	items    int
}

// list reads a list of statements; lists inside it are part of it.
func (p *parser) list(ns Namespace, list *yaml.Node, depth int) error {
	if depth > maxDepth {
		return placeOf(list).errorf("the policy is nested too deeply")
	}
	for _, item := range list.Content {
		at := placeIn(list, item)
		item = unalias(item)
		if p.items++; p.items > maxItems {
			return at.errorf("the policy has too many statements")
		}
		var err error
		if item.Kind == yaml.SequenceNode && !isTagged(item) {
			err = p.list(ns, item, depth+1)
		} else {
			err = p.statement(ns, at, item, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// statement reads one tagged item.
func (p *parser) statement(ns Namespace, at place, n *yaml.Node, depth int) error {
	tag := n.Tag
	switch tag {
	case "!grant", "!revoke":
		return p.grant(ns, at, n)
	case "!permit", "!deny":
		return p.permit(ns, at, n)
	case "!delete":
		return p.delete(ns, at, n)
	case "!host-factory":
		return at.errorf("!host-factory is not supported by this server")
	}
	if !isTagged(n) {
		return at.errorf("the statement has no tag such as !variable")
	}
	kind := strings.TrimPrefix(tag, "!")
	if _, ok := attributes[kind]; !ok {
		err := at.errorf("Unrecognized data type '%s'", tag)
		err.Hint = "The tag must be one of the following: " + strings.Join(tags, ", ")
		return err
	}
	return p.record(ns, kind, at, n, depth)
}

// unalias follows *name to what &name stands for.
func unalias(n *yaml.Node) *yaml.Node {
	for i := 0; n.Kind == yaml.AliasNode && i < maxDepth; i++ {
		n = n.Alias
	}
	return n
}

// isTagged tells whether the text gives n a tag of its own: !x and not !!str.
func isTagged(n *yaml.Node) bool {
	return strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!")
}

// isNull is for values left out. A tagged node without content is one too.
func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.Tag == "!!null" || n.Value == "" && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0)
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
			return placeOf(k).errorf("attribute '%s' is given twice", k.Value)
		}
		seen[k.Value] = true
		if err := f(k.Value, k, v); err != nil {
			return err
		}
	}
	return nil
}
