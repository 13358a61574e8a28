package definitions

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/pkg/targets"
)

// ParseMapEntry reads the configuration's definition of one data key, which replaces a
// conjur-map. The account, the error and the warnings are as for ParseEntries.
func ParseMapEntry(key, id string, as targets.ContentType, account string) (entries []targets.Entry, warnings []string, err error) {
	p := newMapParser(account)
	p.mapped(targets.Entry{Alias: key, ContentType: cmp.Or(as, targets.ContentText)}, id)
	return p.entries, p.warnings, errors.Join(p.errs...)
}

func newMapParser(account string) *entryParser {
	return &entryParser{account: account, noun: "data key", all: `"*": "*"`, lines: map[string]int{}}
}

// parseMap reads the value of ConjurMapKey, a YAML or JSON mapping from data keys to
// variables. Each item is "key: id", or "key: {id: id, content-type: base64}". The key
// "*" with the id "*" or "prefix/*" stands for all variables. With another id, the key is
// derived from the variable, as in DataKey. An empty map has no entries.
//
// The ids, account, the errors and the warnings are as for ParseEntries: a faulty item is
// omitted. The parser returns the data keys of faulty items.
func parseMap(text, account string) *entryParser {
	p := newMapParser(account)
	root, err := mapNode(text)
	if err != nil {
		p.errs, p.unsure = []error{err}, true
		return p
	}
	if root == nil {
		p.unsure = true // probably a mistake; an intentionally empty map is {}
		return p
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		p.line = root.Content[i].Line
		before := len(p.errs)
		key := Resolve(root.Content[i])
		p.pair(key, Resolve(root.Content[i+1]))
		if len(p.errs) > before {
			p.faulty = append(p.faulty, key.Value)
			p.unsure = p.unsure || key.Kind != yaml.ScalarNode || key.Tag == "!!null" || strings.HasSuffix(key.Value, "*")
		}
	}
	return p
}

// mapNode finds the mapping in a text, or returns nil for an empty text.
func mapNode(text string) (*yaml.Node, error) {
	root, err := decodeMap(text)
	if err == nil {
		return root, nil
	}
	if clipped := clipKeys(text); clipped != text {
		return decodeMap(clipped)
	}
	return nil, err
}

// clipKeys shortens keys that exceed YAML's limit of 1,024 characters, which is also more
// than a Secret's limit. Then the rest of the map can be read, and the parser reports the
// key as too long.
func clipKeys(text string) string {
	const most = 1000
	var clipped strings.Builder
	for rest := text; rest != ""; {
		end := strings.IndexAny(rest, " \t\n\r:\"'{}[],")
		if end < 0 {
			end = len(rest)
		}
		if end > most && endsKey(rest[end:]) {
			clipped.WriteString(rest[:most])
		} else {
			clipped.WriteString(rest[:end])
		}
		next := min(end+1, len(rest)) // past the character that ended it
		clipped.WriteString(rest[end:next])
		rest = rest[next:]
	}
	return clipped.String()
}

// endsKey reports whether a key ends where text begins.
func endsKey(text string) bool {
	if quoted := strings.TrimLeft(text, "\"'"); len(quoted) < len(text) {
		return strings.HasPrefix(strings.TrimLeft(quoted, " \t"), ":")
	}
	after, ok := strings.CutPrefix(text, ":")
	return ok && (after == "" || strings.ContainsRune(" \t\n\r", rune(after[0])))
}

func decodeMap(text string) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var doc, next yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("not valid YAML: %w", YAMLError([]byte(text), err))
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document; write one map")
	}
	root := Resolve(doc.Content[0])
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: a map of data keys to variables is wanted, each \"key: id\", not %s", root.Line, Describe(root))
	}
	return root, nil
}

// pair reads one data key and its variable.
func (p *entryParser) pair(key, value *yaml.Node) {
	if key.Kind != yaml.ScalarNode || key.Tag == "!!null" {
		p.fail("a data key must be text, not %s", Describe(key))
		return
	}
	e := targets.Entry{Alias: key.Value, ContentType: targets.ContentText}
	id := value
	if value.Kind == yaml.MappingNode {
		if id = p.attributes(&e, value); id == nil {
			return
		}
	}
	switch {
	case id.Kind != yaml.ScalarNode || id.Tag == "!!null":
		p.fail("the variable of %q must be text, not %s; write its id", e.Alias, Describe(id))
		return
	case id.Tag != "!!str":
		p.fail("the variable of %q must be text, not %s; put quotes around it", e.Alias, Describe(id))
		return
	}
	p.warnOfMissing(e.Alias, id, false)
	p.mapped(e, id.Value)
}

// mapped adds the entry of a data key.
func (p *entryParser) mapped(e targets.Entry, id string) {
	before := len(p.errs)
	if e.Variable = p.variable(id); len(p.errs) > before {
		return
	}
	switch prefix, pattern := strings.CutSuffix(e.Alias, "*"); {
	case e.IsSet() && !pattern:
		p.fail("the data key %q is to hold a set, which has several; write \"*\", or a prefix and *", e.Alias)
		return
	case e.IsSet():
		if fault := targets.DataKeyFault(prefix + "id"); fault != "" {
			p.fail("the data key %q %s; use another prefix", e.Alias, fault)
			return
		}
	case e.Alias == "*" && !e.All():
		e.Alias = targets.DataKey(e.Variable)
	}
	if fault := targets.DataKeyFault(e.Alias); fault != "" && !e.All() && !e.IsSet() {
		p.fail("the data key %q %s; use another one", e.Alias, fault)
		return
	}
	p.add(e)
}

// attributes reads {id, content-type} and returns the node of the id, or nil without one.
func (p *entryParser) attributes(e *targets.Entry, value *yaml.Node) (id *yaml.Node) {
	for i := 0; i+1 < len(value.Content); i += 2 {
		name, attribute := Resolve(value.Content[i]), Resolve(value.Content[i+1])
		switch name.Value {
		case "id", string(targets.ContentKeys), string(targets.ContentCredential):
			if id != nil {
				p.fail("%q has two of id, keys and credential; write one", e.Alias)
				return nil
			}
			if id = attribute; name.Value != "id" {
				e.ContentType = targets.ContentType(name.Value)
			}
		case "content-type":
			if !e.IsSet() {
				e.ContentType = p.contentType(attribute.Value)
			}
		default:
			p.warn("%q has an attribute %q, which is ignored; use id and content-type, or keys, or credential", e.Alias, name.Value)
		}
	}
	if id == nil {
		p.fail("%q has no id; write \"id: \" and a variable", e.Alias)
	}
	return id
}
