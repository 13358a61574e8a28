package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/pkg/targets"
)

// decoder reads a configuration file into its types. It is strict: what these
// do not have, or what is written twice or of another type, is a problem. All
// problems are reported, each with its line.
type decoder struct {
	*report
	file string // its name
}

// decode reads a whole file; what is not valid is left out.
func (d *decoder) decode(data []byte) *file {
	yamls := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	f := &file{}
	switch err := yamls.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return f
	case err != nil:
		d.fail(d.file, "not valid YAML: %v", targets.YAMLError(data, err))
		return f
	}
	if err := yamls.Decode(&next); !errors.Is(err, io.EOF) {
		d.fail(d.file, "more than one YAML document; write one")
		return f
	}
	d.level(f).object("", "", doc.Content[0], reflect.ValueOf(f).Elem())
	return f
}

// key is the place of a node, for a Problem.
func (d *decoder) key(node *yaml.Node, path string) string {
	if path == "" {
		return fmt.Sprintf("%s:%d", d.file, node.Line)
	}
	return fmt.Sprintf("%s:%d: %s", d.file, node.Line, path)
}

// fields calls each for every key of a map, once.
func (d *decoder) fields(path string, node *yaml.Node, each func(key, value *yaml.Node, name string)) {
	node = resolveAlias(node)
	if node.Kind != yaml.MappingNode {
		d.fail(d.key(node, path), "must be a map")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if seen[key.Value] {
			d.fail(d.key(key, join(path, key.Value)), "written twice")
			continue
		}
		seen[key.Value] = true
		each(key, resolveAlias(node.Content[i+1]), key.Value)
	}
}

// item reads one item of a list or a map into a type that has a table of its
// own. Where the type has a short form, a text is that.
func (d *decoder) item(path string, at, node *yaml.Node, into any) {
	l := d.level(into)
	short, ok := into.(interface{ short() *textField })
	switch {
	case ok && node.Kind == yaml.ScalarNode:
		l.leaf(l.table[0], d.key(at, path), node, short.short())
	case node.Kind != yaml.MappingNode:
		d.fail(d.key(at, path), "must be a map")
		return
	default:
		l.object(path, "", node, reflect.ValueOf(into).Elem())
	}
	for _, s := range l.table {
		if s.required && !fieldOf(into, s.name).set {
			d.fail(d.key(at, path), "%s is missing", s.name)
		}
	}
}

// level is a decoder inside of a type whose leaves are in a table.
type level struct {
	*decoder
	table []setting
	paths []string // of the type's leaves, and of what they are in
}

func (d *decoder) level(into any) level {
	return level{d, into.(interface{ table() []setting }).table(), paths("", reflect.TypeOf(into).Elem())}
}

// object reads a map into a struct. The names in the table begin with below.
func (l level) object(path, below string, node *yaml.Node, into reflect.Value) {
	l.fields(path, node, func(key, value *yaml.Node, name string) {
		full := join(path, name)
		field, ok := fieldByKey(into, name)
		if !ok {
			l.fail(l.key(key, full), "not a setting%s", suggestion(join(below, name), l.paths))
			return
		}
		s, _ := find(l.table, join(below, name))
		switch f := field.Addr().Interface().(type) {
		case leaf:
			l.leaf(s, l.key(key, full), value, f)
		case composite:
			held := f.hold()
			held.key, held.set = l.key(key, full), true
			f.decode(l.decoder, full, value)
		default:
			l.object(full, join(below, name), value, field)
		}
	})
}

// leaf reads and checks one value. A value that is empty, where that has no
// meaning, is left out.
func (l level) leaf(s setting, key string, node *yaml.Node, into leaf) {
	v := into.hold()
	*v = value{text: node.Value, key: key, set: true}
	_, entries := into.(*entriesField)
	err := into.wants(node)
	switch {
	case s.kind == kindDuration && node.Kind == yaml.ScalarNode && node.Tag == "!!int" && s.check(node.Value) != nil:
		err = s.check(node.Value) // quotes would not help
	case err != nil:
	case node.Kind != yaml.ScalarNode || entries:
		v.node = node
	case node.Value == "" && s.emptyIsUnset():
		*v = value{}
	default:
		err = s.check(node.Value)
	}
	if err != nil {
		l.fail(key, "%v", err)
		v.bad = true
	}
}

// fieldByKey finds the field of a struct that a key of the file is for.
func fieldByKey(v reflect.Value, key string) (reflect.Value, bool) {
	for _, field := range reflect.VisibleFields(v.Type()) {
		if !field.Anonymous && field.Tag.Get("yaml") == key {
			return v.FieldByIndex(field.Index), true
		}
	}
	return reflect.Value{}, false
}

// paths lists the paths of all fields of a struct.
func paths(below string, t reflect.Type) (all []string) {
	for _, field := range reflect.VisibleFields(t) {
		path := join(below, field.Tag.Get("yaml"))
		if field.Anonymous {
			continue
		}
		all = append(all, path)
		switch reflect.New(field.Type).Interface().(type) {
		case leaf, composite:
		default:
			all = append(all, paths(path, field.Type)...)
		}
	}
	return all
}

// fieldOf finds what a file, or an item of it, holds for a name of its table.
// It must be there.
func fieldOf(of any, name string) *value {
	v := reflect.ValueOf(of).Elem()
	for key := range strings.SplitSeq(name, ".") {
		v, _ = fieldByKey(v, key)
	}
	return v.Addr().Interface().(interface{ hold() *value }).hold()
}

// resolveAlias follows a YAML alias to the node that it stands for.
func resolveAlias(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
