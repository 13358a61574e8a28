package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// ConfigFileVariable names the configuration file if Sources.Read is given none.
const ConfigFileVariable = "SYNCER_CONFIG"

// item contains the settings in a map of the configuration file: the whole file, or one
// item of a list in it. The keys are the names in its table.
type item map[string]value

// addFile reads a file into the settings that no stronger source has set. It returns
// false if it cannot read the whole file, because the file's settings are then unknown.
func (v *values) addFile(file File, r *report) bool {
	switch {
	case file.Err != nil:
		r.fail(file.Name, "the configuration file cannot be read: %v", file.Err)
		return false
	case file.Name != "":
		return v.parseFile(file.Name, file.Text, r)
	}
	return true
}

func (v *values) parseFile(name string, data []byte, r *report) bool {
	f, ok := (&decoder{r, name}).decode(data)
	for _, s := range fileSettings() {
		val := f[s.name]
		if !val.set || v.process[s.name].set {
			continue
		}
		if s.later {
			r.warn(val.key, notYet)
		}
		v.process[s.name] = val
	}
	v.addTargets(f["targets"].items, r)
	return ok
}

// decoder reads a configuration file by its tables of settings. It is strict: an unknown
// setting, a duplicate and a wrong type are problems. It reports all problems, each with
// its line.
type decoder struct {
	*report
	file string // its name
}

// decode reads a whole file, and omits invalid parts. It returns false if the file is not
// a single map.
func (d *decoder) decode(data []byte) (item, bool) {
	yamls := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	f := item{}
	switch err := yamls.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return f, true
	case err != nil:
		d.fail(d.file, "not valid YAML: %v", definitions.YAMLError(data, err))
		return f, false
	}
	if err := yamls.Decode(&next); !errors.Is(err, io.EOF) {
		d.fail(d.file, "more than one YAML document; write one")
		return f, false
	}
	root := definitions.Resolve(doc.Content[0])
	d.object("", "", fileSettings(), root, f)
	return f, root.Kind == yaml.MappingNode
}

// key returns the location of a node, for a Problem.
func (d *decoder) key(node *yaml.Node, path string) string {
	if path == "" {
		return fmt.Sprintf("%s:%d", d.file, node.Line)
	}
	return fmt.Sprintf("%s:%d: %s", d.file, node.Line, path)
}

// fields calls each once for every key of a map.
func (d *decoder) fields(path string, node *yaml.Node, each func(key, value *yaml.Node, name string)) {
	node = definitions.Resolve(node)
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
		each(key, definitions.Resolve(node.Content[i+1]), key.Value)
	}
}

// object reads a map. Its settings are those of the table whose names begin with below.
func (d *decoder) object(path, below string, table []setting, node *yaml.Node, into item) {
	d.fields(path, node, func(key, value *yaml.Node, name string) {
		full, name := join(path, name), join(below, name)
		if s, ok := find(table, name); ok && !s.envOnly {
			if val := d.value(s, full, key, value); val.set {
				into[name] = val
			}
			return
		}
		if known := paths(table); slices.Contains(known, name) {
			d.object(full, name, table, value, into)
		} else {
			d.fail(d.key(key, full), "not a setting%s", suggestion(name, known))
		}
	})
}

// value reads and checks the text of one setting. If an empty text has no meaning for the
// setting, the setting counts as not set.
func (d *decoder) value(s setting, path string, at, node *yaml.Node) value {
	v := value{text: node.Value, key: d.key(at, path), set: true}
	err := s.wants(node)
	switch {
	case s.items != nil && err == nil:
		v.node = node
		d.items(s, path, node, &v)
	case s.kind == kindDuration && node.Kind == yaml.ScalarNode && node.Tag == "!!int" && s.checkText(node.Value) != nil:
		err = s.checkText(node.Value) // quotes would not help
	case err != nil:
	case node.Kind != yaml.ScalarNode || s.kind == kindEntries:
		v.node = node
	case node.Value == "" && s.emptyIsUnset():
		return value{}
	default:
		if s.oneLine(&v, d.report); v.text == "" && s.emptyIsUnset() {
			return value{}
		}
		err = s.checkText(v.text)
	}
	if err != nil && !v.bad {
		d.fail(v.key, "%v", err)
		v.bad = true
	}
	return v
}

// items reads the items of a list, or the items of a map with their names.
func (d *decoder) items(s setting, path string, node *yaml.Node, v *value) {
	switch s.kind {
	case kindObject:
		v.items = []item{d.item(s, path, node, node)}
		return
	case kindMap:
		d.fields(path, node, func(key, n *yaml.Node, name string) {
			v.keys = append(v.keys, name)
			v.items = append(v.items, d.item(s, join(path, name), key, n))
		})
		return
	}
	for i, n := range node.Content {
		place := itemKey(path, i)
		d.concerning(func() { v.items = append(v.items, d.item(s, string(place), n, definitions.Resolve(n))) }, place)
	}
}

// item reads one item; at is its location.
func (d *decoder) item(s setting, path string, at, node *yaml.Node) item {
	it := item{}
	switch {
	case s.short && node.Kind == yaml.ScalarNode:
		if val := d.value(s.items[0], path, at, node); val.set {
			it[s.items[0].name] = val
		}
	case node.Kind != yaml.MappingNode:
		d.fail(d.key(at, path), "must be a map")
		return it
	default:
		d.object(path, "", s.items, node, it)
	}
	for _, s := range s.items {
		if s.required && !it[s.name].set {
			it[s.name] = value{key: d.key(at, path), bad: true}
			d.fail(it[s.name].key, "%s is missing", s.name)
		}
	}
	return it
}

// wants returns the problem with the type of a node. It converts no type to another, so a
// text that looks like a number needs quotes.
func (s setting) wants(node *yaml.Node) error {
	switch s.kind {
	case kindBoolean:
		return wantsScalar(node, "!!bool", "true or false")
	case kindInteger:
		return wantsScalar(node, "!!int", "an integer")
	case kindPercent:
		if node.Kind == yaml.ScalarNode && node.Tag == "!!int" {
			return nil
		}
		return wantsScalar(node, "!!str", "a number or off")
	case kindNodeSecrets:
		if node.Kind == yaml.ScalarNode && node.Tag == "!!bool" {
			return nil
		}
		return wantsScalar(node, "!!str", "true, false, required or aliases")
	case kindNames:
		return wantsNames(node)
	case kindTexts:
		if node.Kind == yaml.SequenceNode {
			return wantsNames(node)
		}
		return wantsScalar(node, "!!str", "text, or a list of texts")
	case kindSecrets, kindItems:
		if node.Kind != yaml.SequenceNode {
			return errors.New("must be a list; begin each item with \"- \"")
		}
		return nil
	case kindMap, kindObject, kindEntries: // the caller reads their content
		return nil
	}
	return wantsScalar(node, "!!str", "text")
}

func wantsNames(node *yaml.Node) error {
	if node.Kind != yaml.SequenceNode {
		return errors.New("must be a list of names")
	}
	for _, n := range node.Content {
		if n = definitions.Resolve(n); n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
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
	case node.Kind == yaml.SequenceNode, node.Kind == yaml.MappingNode:
		return fmt.Errorf("must be %s, not %s", what, definitions.Describe(node))
	}
	return fmt.Errorf("must be %s", what)
}

// paths lists the names of a table that a file may contain, each after the names of the
// maps around it.
func paths(table []setting) (all []string) {
	for _, s := range table {
		for i, r := range s.name + "." {
			if r == '.' && !s.envOnly && !slices.Contains(all, s.name[:i]) {
				all = append(all, s.name[:i])
			}
		}
	}
	return all
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// File is an input file of Load.
type File struct {
	Name string // for a Problem
	Text []byte
	Err  error // the read error, without the file's name
}

// ReadFile reads a whole file of a reasonable size.
func ReadFile(name string) File {
	text, err := safefile.Read(name, safefile.MaxInput)
	return File{name, text, cause(err)}
}

// Read returns the sources with the current content of their files. Without a name, the
// configuration file is that of the variable ConfigFileVariable. Read opens no other file
// than those that the sources name.
func (s Sources) Read() Sources {
	if s.Annotations.Name != "" {
		s.Annotations = ReadFile(s.Annotations.Name)
	}
	if s.ConfigFile.Name == "" && s.Getenv != nil {
		s.ConfigFile.Name = s.Getenv(ConfigFileVariable)
	}
	if s.ConfigFile.Name != "" {
		s.ConfigFile = ReadFile(s.ConfigFile.Name)
	}
	if s.Templates == nil && s.TemplatesDir != "" {
		s.Templates = TemplateFolder(s.TemplatesDir)
	}
	return s
}

// TemplateFolder is a folder of template files. It supports only reads of whole files.
type TemplateFolder string

// ReadFile returns a file's content.
func (dir TemplateFolder) ReadFile(name string) ([]byte, error) {
	return safefile.Read(filepath.Join(string(dir), name), targets.MaxTemplateText)
}

// Open always returns an error.
func (TemplateFolder) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// cause removes the path from an error.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
