package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ConfigFileVariable names the configuration file when Sources does not.
const ConfigFileVariable = "SYNCER_CONFIG"

// fieldTargets and fieldName are the parts of the configuration file that are
// not settings: the list of targets, and the name of a target's group.
const (
	fieldTargets = "targets"
	fieldName    = "name"
)

// fileReader takes the values of a configuration file: YAML in which the
// settings' names are paths, and below targets one map for each group. It is
// strict: what it does not know, or finds twice or of another type, is a
// problem.
type fileReader struct {
	*values
	*report
	file string
}

// addFile reads the file at path into what no stronger source has set.
func (v *values) addFile(path string, r *report) {
	data, err := os.ReadFile(path)
	if err != nil {
		r.fail(path, "the configuration file cannot be read: %v", errors.Unwrap(err))
		return
	}
	v.parseFile(path, data, r)
}

func (v *values) parseFile(name string, data []byte, r *report) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return
	case err != nil:
		r.fail(name, "not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		r.fail(name, "more than one YAML document; write one")
		return
	}
	f := &fileReader{v, r, name}
	f.object("", doc.Content[0])
}

// key is the place of a node, for a Problem.
func (f *fileReader) key(node *yaml.Node, path string) string {
	if path == "" {
		return fmt.Sprintf("%s:%d", f.file, node.Line)
	}
	return fmt.Sprintf("%s:%d: %s", f.file, node.Line, path)
}

// fields calls each for every key of a map, once.
func (f *fileReader) fields(path string, node *yaml.Node, each func(key, value *yaml.Node, name string)) {
	node = resolveAlias(node)
	if node.Kind != yaml.MappingNode {
		f.fail(f.key(node, path), "must be a map")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if seen[key.Value] {
			f.fail(f.key(key, join(path, key.Value)), "written twice")
			continue
		}
		seen[key.Value] = true
		each(key, resolveAlias(node.Content[i+1]), key.Value)
	}
}

// object reads a map whose place in the file is path; the root's is empty.
func (f *fileReader) object(path string, node *yaml.Node) {
	f.fields(path, node, func(key, value *yaml.Node, name string) {
		full := join(path, name)
		if full == fieldTargets {
			f.targets(value)
			return
		}
		if s, ok := fileSetting(f.table, full); ok {
			f.put(nil, s, key, value, full)
			return
		}
		if isObject(full) {
			f.object(full, value)
			return
		}
		f.fail(f.key(key, full), "not a setting%s", suggestField(full))
	})
}

func (f *fileReader) targets(list *yaml.Node) {
	if list.Kind != yaml.SequenceNode {
		f.fail(f.key(list, fieldTargets), "must be a list, each item with a name and secrets")
		return
	}
	for i, item := range list.Content {
		f.target(resolveAlias(item), fmt.Sprintf("%s[%d]", fieldTargets, i))
	}
}

// target reads one target, which must have a name that no other has.
func (f *fileReader) target(item *yaml.Node, path string) {
	var group string
	f.fields(path, item, func(key, value *yaml.Node, name string) {
		if name != fieldName {
			return
		}
		if value.Kind != yaml.ScalarNode || value.Tag != "!!str" || value.Value == "" {
			f.fail(f.key(key, join(path, name)), "must be text")
		} else {
			group = value.Value
		}
	})
	if item.Kind != yaml.MappingNode {
		return
	}
	_, twice := f.groups[group]
	switch {
	case group == "":
		f.fail(f.key(item, path), "the target has no name")
	case twice:
		f.fail(f.key(item, path), "the name %q is already that of another target or of a group in the annotations", group)
		return
	}
	f.targetFields(item, path, group)
}

func (f *fileReader) targetFields(item *yaml.Node, path, group string) {
	for i := 0; i+1 < len(item.Content); i += 2 {
		key, value := item.Content[i], resolveAlias(item.Content[i+1])
		full := join(path, key.Value)
		if key.Value == fieldName {
			continue
		}
		if s, ok := fileSetting(f.groupTable, key.Value); ok {
			f.put(&group, s, key, value, full)
		} else {
			f.fail(f.key(key, full), "not a setting of a target%s", suggestTargetField(key.Value))
		}
	}
	if group != "" && !f.groups[group][nameSecrets].set {
		f.values.put(nameSecrets, &group, value{key: f.key(item, path), set: true, bad: true})
		f.fail(f.key(item, path), "the target has no secrets")
	}
}

// put checks a setting's type and text and keeps it, unless a stronger source
// has set it.
func (f *fileReader) put(group *string, s setting, key, node *yaml.Node, path string) {
	val := value{text: node.Value, key: f.key(key, path), set: true}
	if err := checkType(s, node); err != nil {
		f.fail(val.key, "%v", err)
		val.bad = true
	} else if node.Kind != yaml.ScalarNode || s.kind == kindEntries {
		val.node = node
	} else if node.Value == "" && s.emptyIsUnset() {
		return
	} else if err := s.check(node.Value); err != nil {
		f.fail(val.key, "%v", err)
		val.bad = true
	}
	if group == nil && f.process[s.name].set {
		return
	}
	if s.later {
		f.warn(val.key, notYet)
	}
	f.values.put(s.name, group, val)
}

// checkType tells whether a node has the YAML type of a setting's kind. It
// takes nothing for something else: a text that looks like a number needs
// quotes.
func checkType(s setting, node *yaml.Node) error {
	switch s.kind {
	case kindEntries:
		return nil // ParseEntryList checks it
	case kindNames:
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
	want, what := "!!str", "text"
	switch s.kind {
	case kindBoolean:
		want, what = "!!bool", "true or false"
	case kindInteger:
		want, what = "!!int", "an integer"
	}
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == want:
		return nil
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		return errors.New("has no value; write one or remove it")
	case node.Kind == yaml.ScalarNode && want == "!!str":
		return fmt.Errorf("must be %s; put %s in quotes", what, node.Value)
	}
	return fmt.Errorf("must be %s", what)
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
