package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/internal/lazyregexp"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// ReadValues reads a YAML or JSON file of values. It maps each variable id to a text, or
// to a mapping with the single key base64. A number or a Boolean counts as the text that is
// written. The path "-" is standard input, which is in. Its errors show no value.
func ReadValues(path string, in io.Reader) (map[string][]byte, error) {
	text, err := ReadInput(path, in)
	path = inputName(path)
	if err != nil {
		return nil, fmt.Errorf("the values cannot be read: %w", err)
	}
	defer clear(text)
	parse := parseYAML
	if json.Valid(text) { // JSON has escapes that YAML lacks
		parse = parseJSON
	}
	values, err := parse(text)
	return values, about(path, err)
}

var (
	errNoMapping = errors.New("not a mapping of variable id to value")
	errNoText    = errors.New("is neither a text nor {base64: …}")
	errNoBase64  = errors.New("is not base64")
	errTwice     = errors.New("is written twice")
)

// parseJSON reads valid JSON.
func parseJSON(data []byte) (map[string][]byte, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil, errNoMapping
	}
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8; write other bytes as {base64: …}")
	}
	values := map[string][]byte{}
	var errs []error
	decoder := json.NewDecoder(bytes.NewReader(data))
	_, _ = decoder.Token() // the brace; the whole is known to be valid
	for decoder.More() {
		key, _ := decoder.Token()
		id, _ := key.(string)
		var raw json.RawMessage
		_ = decoder.Decode(&raw)
		value, err := parseValue(raw)
		if _, twice := values[id]; twice {
			err = errTwice
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("the value of %s %w", id, err))
		}
		values[id] = value
	}
	return values, errors.Join(errs...)
}

// parseValue reads one value of a JSON object. The error continues the phrase "the value
// of x".
func parseValue(raw json.RawMessage) ([]byte, error) {
	switch raw[0] {
	case '"':
		var text string
		_ = json.Unmarshal(raw, &text)
		if bytes.Count(raw, []byte("\uFFFD"))+strings.Count(strings.ToLower(string(raw)), `\ufffd`) < strings.Count(text, "\uFFFD") {
			return nil, errors.New("has half of a surrogate pair, which is not a character")
		}
		return []byte(text), nil
	case '{':
		var object map[string]string
		if err := json.Unmarshal(raw, &object); err != nil || len(object) != 1 {
			return nil, errNoText
		}
		if encoded, ok := object["base64"]; ok {
			return decoded(encoded)
		}
		return nil, errNoText
	case '[', 'n':
		return nil, errNoText
	}
	return bytes.Clone(raw), nil // a number or a Boolean
}

func decoded(text string) ([]byte, error) {
	value, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errNoBase64 // the error quotes a byte
	}
	return value, nil
}

// parseYAML reads a YAML document.
func parseYAML(data []byte) (map[string][]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		line := yamlLine().FindStringSubmatch(err.Error()) // the rest may quote a value
		if line == nil {
			return nil, errors.New("not valid YAML or JSON")
		}
		return nil, fmt.Errorf("line %s: not valid YAML or JSON", line[1])
	}
	values := map[string][]byte{}
	if len(document.Content) == 0 { // an empty file
		return values, nil
	}
	top := document.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, errNoMapping
	}
	var errs []error
	for i := 0; i+1 < len(top.Content); i += 2 {
		id, node := top.Content[i].Value, top.Content[i+1]
		value, err := valueOf(node)
		if _, twice := values[id]; twice {
			err = errTwice
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: the value of %s %w", node.Line, id, err))
		}
		values[id] = value
	}
	return values, errors.Join(errs...)
}

// yamlLine is the position in an error of the YAML parser.
var yamlLine = lazyregexp.New(`^yaml: line (\d+): `)

// valueOf reads one value of a YAML mapping. The error continues the phrase "the value of
// x".
func valueOf(node *yaml.Node) ([]byte, error) {
	node = definitions.Resolve(node)
	switch {
	case node.Kind == yaml.ScalarNode && node.ShortTag() == "!!binary":
		return decoded(node.Value)
	case node.Kind == yaml.ScalarNode && node.ShortTag() != "!!null":
		return []byte(node.Value), nil
	case node.Kind == yaml.MappingNode && len(node.Content) == 2 && node.Content[0].Value == "base64" && node.Content[1].Kind == yaml.ScalarNode:
		return decoded(node.Content[1].Value)
	}
	return nil, errNoText
}
