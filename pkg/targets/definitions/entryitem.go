package definitions

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/pkg/targets"
)

// item reads "id" or "alias: id"; the latter may have a content-type.
func (p *entryParser) item(node *yaml.Node) {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		p.fail("the item is empty; write the id of a variable or remove it")
	case node.Kind == yaml.ScalarNode:
		id := p.variable(node.Value)
		alias := id[strings.LastIndex(id, "/")+1:]
		p.warnOfMissing(alias, node, id == node.Value) // otherwise it is written in full
		p.add(targets.Entry{Alias: alias, Variable: id, ContentType: targets.ContentText})
	case node.Kind == yaml.MappingNode:
		p.mapping(node)
	default:
		p.fail("an item is \"- id\" or \"- alias: id\", not %s", Describe(node))
	}
}

func (p *entryParser) mapping(node *yaml.Node) {
	var aliases []string
	seen := map[string]bool{}
	e := targets.Entry{ContentType: targets.ContentText}
	for pair := range slices.Chunk(node.Content, 2) {
		key, value := Resolve(pair[0]), Resolve(pair[1])
		if key.Kind == yaml.ScalarNode && namesSet(value) {
			p.setItem(key.Value, value)
			if len(node.Content) > 2 {
				p.fail("the item of %q has more than one alias; begin each with its own \"- \"", key.Value)
			}
			return
		}
		if key.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode {
			p.fail("an item is \"- alias: id\": the value of %s must be text, not %s", keyName(key), Describe(value))
			return
		}
		if seen[key.Value] {
			p.fail("%q is written twice in one item", key.Value)
			return
		}
		seen[key.Value] = true
		if key.Value == "content-type" {
			e.ContentType = p.contentType(value.Value)
			continue
		}
		if len(aliases) > 0 && p.fileAttribute(&e, key.Value, value.Value) {
			continue
		}
		aliases = append(aliases, key.Value)
		p.warnOfMissing(key.Value, value, false)
		e.Alias, e.Variable = key.Value, p.variable(value.Value)
		if value.Tag == "!!null" {
			e.Variable = ""
		}
	}
	switch len(aliases) {
	case 0:
		p.fail("the item names no variable; write \"- alias: id\"")
	case 1:
		p.add(e)
	default:
		p.fail("the item has %d aliases (%q); begin each with its own \"- \"", len(aliases), aliases)
	}
}

// fileAttribute reads the path or the mode of the entry's file, and reports whether the
// key is either of them.
func (p *entryParser) fileAttribute(e *targets.Entry, key, text string) bool {
	switch key {
	case "path":
		if e.Path = text; text == "" {
			p.fail("the path of %q is empty; write that of a file, such as tls/key.pem, or remove it", e.Alias)
		}
	case "mode":
		mode, err := parseMode(text)
		if err != nil {
			p.fail("the mode of %q: %v", e.Alias, err)
		}
		e.Mode = mode
	default:
		return false
	}
	return true
}

// namesSet reports whether a node is {keys: …} or {credential: …}.
func namesSet(node *yaml.Node) bool {
	if node.Kind != yaml.MappingNode {
		return false
	}
	for pair := range slices.Chunk(node.Content, 2) {
		if name := pair[0].Value; name == string(targets.ContentKeys) || name == string(targets.ContentCredential) {
			return true
		}
	}
	return false
}

// setItem reads "alias: {keys: id}" and "alias: {credential: id}".
func (p *entryParser) setItem(alias string, value *yaml.Node) {
	e := targets.Entry{Alias: alias, ContentType: targets.ContentText}
	id := p.attributes(&e, value)
	switch {
	case id == nil:
	case id.Kind != yaml.ScalarNode || id.Tag != "!!str":
		p.fail("the variable of %q must be text, not %s; write its id", alias, Describe(id))
	default:
		p.warnOfMissing(alias, id, false)
		e.Variable = p.variable(id.Value)
		p.add(e)
	}
}

// warnOfMissing warns of an unquoted id that resembles more than an id. A colon, the
// space after one, or the start of an item may be missing. Only an id without an alias
// can contain an alias before its first colon.
func (p *entryParser) warnOfMissing(alias string, id *yaml.Node, alone bool) {
	missing, has := "", ""
	first, _, _ := strings.Cut(id.Value, "/")
	switch {
	case id.Style != 0:
		return
	case strings.Contains(id.Value, " "):
		missing, has = "a colon", "spaces"
	case alone && strings.Contains(first, ":"):
		missing, has = "the space after a colon", "a colon"
	default:
		return
	}
	p.warn("the %s %q is read as the one variable %q; if %s is missing, write \"%s: id\"; put quotes around an id that has %s", p.noun, alias, id.Value, missing, p.noun, has)
}

// contentType uses text for an unknown type, as the Secrets Provider does.
func (p *entryParser) contentType(text string) targets.ContentType {
	switch c := targets.ContentType(text); c {
	case targets.ContentText, targets.ContentBase64:
		return c
	}
	if text != "" {
		p.warn("%q is not a content-type; taken as text, use one of text, base64", text)
	}
	return targets.ContentText
}
