package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/pkg/secret"
)

// parseValues reads a JSON object. It maps each variable id to a text, or to an object
// with the single key base64. Its errors show no value.
func parseValues(data []byte) (map[string]secret.Value, error) {
	var whole json.RawMessage
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(data, &whole); {
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("line %d: not valid JSON", 1+bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n")))
	case err != nil || !bytes.HasPrefix(whole, []byte("{")):
		return nil, errors.New("not a JSON object of variable id to value")
	case !utf8.Valid(data):
		return nil, errors.New(`not UTF-8; write other bytes as {"base64": "…"}`)
	}
	values := map[string]secret.Value{}
	var errs []error
	decoder := json.NewDecoder(bytes.NewReader(whole))
	_, _ = decoder.Token() // the brace; the whole is known to be valid
	for decoder.More() {
		key, _ := decoder.Token()
		id, _ := key.(string)
		var raw json.RawMessage
		_ = decoder.Decode(&raw)
		value, err := parseValue(raw)
		if _, twice := values[id]; twice {
			err = errors.New("is written twice")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("the value of %s %w", id, err))
		}
		values[id] = value
	}
	return values, errors.Join(errs...)
}

// parseValue reads one value. The error continues the phrase "the value of x".
func parseValue(raw json.RawMessage) (secret.Value, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil && raw[0] == '"' {
		if bytes.Count(raw, []byte("\uFFFD"))+strings.Count(strings.ToLower(string(raw)), `\ufffd`) < strings.Count(text, "\uFFFD") {
			return secret.Value{}, errors.New("has half of a surrogate pair, which stands for no character")
		}
		return secret.New([]byte(text)), nil
	}
	var object map[string]string
	if err := json.Unmarshal(raw, &object); err != nil || len(object) != 1 {
		return secret.Value{}, errors.New(`is neither a text nor {"base64": "…"}`)
	}
	encoded, ok := object["base64"]
	if !ok {
		return secret.Value{}, errors.New(`is neither a text nor {"base64": "…"}`)
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return secret.Value{}, errors.New("is not base64")
	}
	return secret.New(decoded), nil
}

// ReadValues reads a YAML file. It maps each variable id to a text, or to a mapping with
// the single key base64. The path "-" is standard input, which is in. Its errors show no
// value.
func ReadValues(path string, in io.Reader) (map[string][]byte, error) {
	text, err := read(path, in)
	path = inputName(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var entries map[string]yaml.Node
	if err := yaml.Unmarshal(text, &entries); err != nil {
		return nil, fmt.Errorf("%s: not a YAML mapping of variable id to value", path) // the error may quote a value
	}
	values := make(map[string][]byte, len(entries))
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		node := entries[id]
		var encoded struct{ Base64 string }
		switch {
		case node.Kind == yaml.ScalarNode:
			values[id] = []byte(node.Value)
		case node.Decode(&encoded) == nil && encoded.Base64 != "":
			if values[id], err = base64.StdEncoding.DecodeString(encoded.Base64); err != nil {
				errs = append(errs, fmt.Errorf("line %d: the value of %s is not base64", node.Line, id))
			}
		default:
			errs = append(errs, fmt.Errorf("line %d: the value of %s is neither a text nor {base64: …}", node.Line, id))
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(errs...))
	}
	return values, nil
}
