package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// leaf is one value of the configuration file.
type leaf interface {
	// wants tells whether the node has the field's type.
	wants(*yaml.Node) error
	hold() *value
}

func (v *value) hold() *value { return v }

// The types of leaves. None takes one type for another: a text that looks like
// a number needs quotes.
type (
	textField    struct{ value }
	booleanField struct{ value }
	integerField struct{ value }
	percentField struct{ value } // a number or a text
	namesField   struct{ value } // a list of texts
	entriesField struct{ value } // as targets.ParseEntryList reads it
)

func (textField) wants(node *yaml.Node) error    { return wantsScalar(node, "!!str", "text") }
func (booleanField) wants(node *yaml.Node) error { return wantsScalar(node, "!!bool", "true or false") }
func (integerField) wants(node *yaml.Node) error { return wantsScalar(node, "!!int", "an integer") }
func (entriesField) wants(*yaml.Node) error      { return nil }

func (percentField) wants(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!int" {
		return nil
	}
	return wantsScalar(node, "!!str", "a number or off")
}

func (namesField) wants(node *yaml.Node) error {
	if node.Kind != yaml.SequenceNode {
		return errors.New("must be a list of names")
	}
	for _, n := range node.Content {
		if n = resolveAlias(n); n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
			return fmt.Errorf("line %d: must be a name", n.Line)
		}
	}
	return nil
}

func wantsScalar(node *yaml.Node, tag, what string) error {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == tag:
		return nil
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		return errors.New("has no value; write one or remove it")
	case node.Kind == yaml.ScalarNode && tag == "!!str" && !strings.Contains(node.Value, "\n"):
		return fmt.Errorf("must be %s; put %s in quotes", what, node.Value)
	}
	return fmt.Errorf("must be %s", what)
}

// names are the texts of a namesField.
func (v *value) names() []string {
	if v.node == nil || v.bad {
		return nil
	}
	var names []string
	for _, n := range v.node.Content {
		names = append(names, resolveAlias(n).Value)
	}
	return names
}

// isTrue tells what a booleanField says; one that is not set, or bad, is false.
func (v *value) isTrue() bool {
	is, err := strconv.ParseBool(v.text)
	return err == nil && is
}

// composite is a part of the configuration file with parts of its own, of
// which there may be any number.
type composite interface {
	decode(d *decoder, path string, node *yaml.Node)
	hold() *value
}

// listField is a list of maps.
type listField[T any] struct {
	value
	items []T
}

func (l *listField[T]) decode(d *decoder, path string, node *yaml.Node) {
	if node.Kind != yaml.SequenceNode {
		l.bad = true
		d.fail(l.key, "must be a list; begin each item with \"- \"")
		return
	}
	for i, n := range node.Content {
		var item T
		d.item(fmt.Sprintf("%s[%d]", path, i), n, resolveAlias(n), &item)
		l.items = append(l.items, item)
	}
}

// mapField is a map of maps, in the order in which they are written.
type mapField[T any] struct {
	value
	keys  []string
	items []T
}

func (m *mapField[T]) decode(d *decoder, path string, node *yaml.Node) {
	d.fields(path, node, func(key, n *yaml.Node, name string) {
		var item T
		d.item(join(path, name), key, n, &item)
		m.keys, m.items = append(m.keys, name), append(m.items, item)
	})
}
