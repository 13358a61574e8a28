package main

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

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// offline renders targets with values from a file.
type offline struct {
	file      string // that the values are from
	values    map[string]secret.Value
	templates templateTexts
}

// newOffline reads the values at path, "-" being standard input.
func newOffline(path string, stdin io.Reader, templates templateTexts) (*offline, error) {
	if path == "" {
		return nil, errors.New("name a file of values with --values")
	}
	data, err := readInput(path, stdin)
	if err != nil {
		return nil, fmt.Errorf("the values cannot be read: %w", err)
	}
	values, err := parseValues(data)
	if err != nil {
		return nil, about(inputName(path), err)
	}
	return &offline{inputName(path), values, templates}, nil
}

// check tells which variables of the targets have no value, all at once.
func (o *offline) check(ts []*targets.Target) error {
	var missing []string
	var errs []error
	seen := map[string]bool{}
	for _, t := range ts {
		for _, part := range t.Parts() {
			if part.Expanded != nil && len(part.Entries) == 0 {
				errs = append(errs, fmt.Errorf("%s has no variable that the * of %s stands for", o.file, placeIn(t, part)))
			}
		}
		for _, id := range t.Variables() {
			if _, ok := o.values[id]; !ok && !seen[id] {
				missing, seen[id] = append(missing, id), true
			}
		}
	}
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("%s has no value for %s", o.file, strings.Join(missing, ", ")))
	}
	return errors.Join(errs...)
}

// placeIn names a part of a target.
func placeIn(t, part *targets.Target) string {
	if part == t {
		return string(t.Key)
	}
	return string(t.Key) + ": " + part.Group
}

// render makes a target's content; all of its variables have values.
func (o *offline) render(t *targets.Target) (render.Result, error) {
	if t.Secret != nil {
		return o.renderSecret(t)
	}
	template, err := o.templates(t)
	if err != nil {
		return render.Result{}, fmt.Errorf("%s: the template cannot be read: %w", t.Key, err)
	}
	result, err := render.Render(t, template, o.items(t))
	return result, about(string(t.Key), err)
}

func (o *offline) items(t *targets.Target) []render.Item {
	items := make([]render.Item, len(t.Entries))
	for i, e := range t.Entries {
		items[i] = render.Item{Alias: e.Alias, Value: o.values[e.Variable]}
	}
	return items
}

// renderSecret makes the data of a Secret, all or none.
func (o *offline) renderSecret(t *targets.Target) (render.Result, error) {
	data := render.Secret(t, func(id string) secret.Value { return o.values[id] }, o.templates)
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(data.Errs)) {
		errs = append(errs, about(string(t.Key)+": "+key, data.Errs[key]))
	}
	return render.Result{Parts: data.Parts, Warnings: data.Warnings}, errors.Join(errs...)
}

// parseValues reads a JSON object of variable id to a text, or to an object
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
	_, _ = decoder.Token() // the brace; all of it is known to be valid
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

// parseValue reads one value; the error goes on from "the value of x".
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
