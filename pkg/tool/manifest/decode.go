package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// decode fills in an object of the Kubernetes API. The error joins all values of the
// wrong type, each with its line, and shows no secret data. The zero node leaves the
// object unchanged.
func decode(node *yaml.Node, into any) error {
	if node.IsZero() {
		return nil
	}
	var whole any // refuses aliases that contain themselves or multiply
	if err := node.Decode(&whole); err != nil {
		return explain(err)
	}
	if err := checkNode(node, reflect.TypeOf(into).Elem(), "the object", false); err != nil {
		return err
	}
	text, err := json.Marshal(whole)
	if err != nil || json.Unmarshal(text, into) != nil {
		return fmt.Errorf("line %d: not a Kubernetes object; write apiVersion, kind and metadata", node.Line)
	}
	return nil
}

// checkNode compares a tree with a type of the API. A type with a custom decoder is left
// to that decoder. If strict is true, a text must also be a text in YAML 1.1.
func checkNode(node *yaml.Node, t reflect.Type, what string, strict bool) error {
	at, node := node, definitions.Resolve(node)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if node.Tag == "!!null" || t.Kind() == reflect.Interface || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	kind, tags := yaml.ScalarNode, []string(nil)
	switch t.Kind() {
	case reflect.String:
		if !strict && node.Kind == yaml.ScalarNode && node.Tag == "!!str" {
			return nil
		}
		_, err := textOf(at, what)
		return err
	case reflect.Struct:
		if node.Kind == yaml.MappingNode {
			return checkFields(node, t)
		}
		kind = yaml.MappingNode
	case reflect.Map:
		if node.Kind == yaml.MappingNode {
			return checkMap(node, t.Elem(), strings.TrimSuffix(what, "s"), strict)
		}
		kind = yaml.MappingNode
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 { // base64
			_, err := textOf(at, what)
			return err
		}
		if node.Kind == yaml.SequenceNode {
			return checkItems(node, t.Elem(), what)
		}
		kind = yaml.SequenceNode
	case reflect.Bool:
		tags = []string{"!!bool"}
	default:
		tags = []string{"!!int", "!!float"}
	}
	if node.Kind == kind && slices.Contains(tags, node.Tag) {
		return nil
	}
	return fmt.Errorf("line %d: the value has another type than Kubernetes expects; see kubectl explain", at.Line)
}

func checkItems(node *yaml.Node, t reflect.Type, what string) error {
	var errs []error
	for _, item := range node.Content {
		errs = append(errs, checkNode(item, t, "an item of "+what, false))
	}
	return errors.Join(errs...)
}

// checkMap checks a map. If strict is true, no text may be missing.
func checkMap(node *yaml.Node, t reflect.Type, what string, strict bool) error {
	var errs []error
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		if strict && t.Kind() == reflect.String {
			_, err := textOf(value, what+" "+key)
			errs = append(errs, err)
		} else {
			errs = append(errs, checkNode(value, t, what+" "+key, false))
		}
	}
	return errors.Join(errs...)
}

// checkFields checks a struct. It reports the names of containers and variables, because
// a manifest has many of them.
func checkFields(node *yaml.Node, t reflect.Type) error {
	var errs []error
	for i := 0; i+1 < len(node.Content); i += 2 {
		field, ok := fieldOf(t, node.Content[i].Value)
		if !ok {
			continue
		}
		key := node.Content[i].Value
		what := "the " + key
		if t == reflect.TypeFor[corev1.EnvVar]() {
			what += " of the variable " + nameIn(node)
		}
		errs = append(errs, checkNode(node.Content[i+1], field.Type, what, key == "annotations" || key == "image" || key == "value"))
	}
	if t == reflect.TypeFor[corev1.Container]() {
		return within("container "+nameIn(node), errs...)
	}
	return errors.Join(errs...)
}

// fieldOf finds a field by its name in JSON, including those of inlined structs.
func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name && name != "" {
			return f, true
		}
		if f.Anonymous && tag == "" {
			if f, ok := fieldOf(f.Type, name); ok {
				return f, true
			}
		}
	}
	return reflect.StructField{}, false
}

// nameIn returns the value of name in a map, or "".
func nameIn(node *yaml.Node) string { return valueIn(node, "name").Value }

// valueIn returns the value at a path of keys in a map, or in a map merged into it.
// Without a value it returns the zero node.
func valueIn(node *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		var values map[string]yaml.Node
		if node.Decode(&values) != nil {
			return &yaml.Node{}
		}
		value := values[key]
		node = &value
	}
	return node
}
