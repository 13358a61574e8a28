package config_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// TestSchemaAgreesWithLoad holds the schema against what Load accepts and
// refuses.
func TestSchemaAgreesWithLoad(t *testing.T) {
	data, err := os.ReadFile("../docs/config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		everything, definitionsFile, several, "", "{}",
		"targets: [{name: a, secrets: '*'}]",
		"targets: [{name: a, secrets: [1, true, x/y, {k: 7}, {k: v, content-type: text}]}]",
		"refresh: {interval: 1h30m}",
		"conjur: {httpTimeoutSeconds: 600}",
		"kubernetes: {secrets: [a, b], namespaces: ['*']}",
		"removal: {brake: off, grace: 0s}",
		"removal: {brake: '5%', grace: 1.5h}",
		"removal: {brake: 100, grace: ''}",
		"server: {address: '[::1]:80'}",
		"restartApp: {signal: SIGUSR1, user: app}",
		`rotation: {sets: [{set: a, postgresql: {address: ["/run:1/a", "[::1]:5432/a"], pooler: "p:6432", admin: a, users: [a, b]}}]}`,
		`rotation: {sets: [{set: a, mysql: {address: "db:3306", admin: a, users: a}}]}`,
		`rotation: {sets: [{set: a, mysql: {address: "db:3306", admin: a, users: [a]}}]}`,
		`rotation: {sets: [{set: a, rabbitmq: {address: ["q:5671"], api: "https://q:15671/", admin: a, users: [a, b]}}]}`,
		`rotation: {sets: [{set: a, redis: {address: ["[::1]:6379", "b:6379"], admin: a, users: [a]}}]}`,
	} {
		if err := violates(schema, decode(t, text)); err != nil {
			t.Errorf("%s\nis refused: %v", text, err)
		}
	}
	for name, c := range refused {
		if violates(schema, decode(t, c.yaml)) == nil {
			t.Errorf("%s: the schema accepts %s", name, c.yaml)
		}
	}
}

func decode(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// violates is a JSON Schema validator for the keywords that the schema has.
// A keyword that it does not know is an error too.
func violates(schema map[string]any, v any) error {
	for keyword, arg := range schema {
		if err := violation(keyword, arg, schema, v); err != nil {
			return fmt.Errorf("%s: %w", keyword, err)
		}
	}
	return nil
}

func violation(keyword string, arg any, schema map[string]any, v any) error {
	ok := true
	switch keyword {
	case "$schema", "title", "description":
	case "type":
		ok = hasType(arg, v)
	case "enum":
		ok = slices.ContainsFunc(arg.([]any), func(a any) bool { return reflect.DeepEqual(a, v) })
	case "const":
		ok = reflect.DeepEqual(arg, v)
	case "anyOf":
		ok = slices.ContainsFunc(arg.([]any), func(a any) bool { return violates(a.(map[string]any), v) == nil })
	case "pattern":
		s, is := v.(string)
		ok = !is || regexp.MustCompile(arg.(string)).MatchString(s)
	case "not":
		ok = violates(arg.(map[string]any), v) != nil
	case "maxLength":
		s, is := v.(string)
		ok = !is || float64(utf8.RuneCountInString(s)) <= arg.(float64)
	case "minLength":
		s, is := v.(string)
		ok = !is || float64(utf8.RuneCountInString(s)) >= arg.(float64)
	case "minimum":
		n, is := v.(float64)
		ok = !is || n >= arg.(float64)
	case "maximum":
		n, is := v.(float64)
		ok = !is || n <= arg.(float64)
	case "minItems", "items", "uniqueItems":
		return listViolation(keyword, arg, v)
	default:
		return objectViolation(keyword, arg, schema, v)
	}
	if !ok {
		return fmt.Errorf("%v is not %v", v, arg)
	}
	return nil
}

func hasType(arg, v any) bool {
	if several, ok := arg.([]any); ok {
		return slices.ContainsFunc(several, func(a any) bool { return hasType(a, v) })
	}
	switch v := v.(type) {
	case nil:
		return arg == "null"
	case bool:
		return arg == "boolean"
	case string:
		return arg == "string"
	case float64:
		return arg == "number" || arg == "integer" && v == math.Trunc(v)
	case []any:
		return arg == "array"
	}
	return arg == "object"
}

func listViolation(keyword string, arg, v any) error {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	if keyword == "minItems" {
		if float64(len(list)) < arg.(float64) {
			return fmt.Errorf("%d items", len(list))
		}
		return nil
	}
	for i, item := range list {
		if keyword == "uniqueItems" {
			if slices.Contains(list[:i], item) {
				return fmt.Errorf("%v is listed twice", item)
			}
			continue
		}
		if err := violates(arg.(map[string]any), item); err != nil {
			return err
		}
	}
	return nil
}

func objectViolation(keyword string, arg any, schema map[string]any, v any) error {
	o, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	properties, _ := schema["properties"].(map[string]any)
	switch keyword {
	case "required":
		for _, name := range arg.([]any) {
			if _, ok := o[name.(string)]; !ok {
				return fmt.Errorf("%s is missing", name)
			}
		}
		return nil
	case "minProperties":
		if float64(len(o)) < arg.(float64) {
			return fmt.Errorf("%d properties", len(o))
		}
		return nil
	case "maxProperties":
		if float64(len(o)) > arg.(float64) {
			return fmt.Errorf("%d properties", len(o))
		}
		return nil
	case "properties", "additionalProperties":
	default:
		return fmt.Errorf("unknown keyword")
	}
	for name, value := range o {
		sub, known := properties[name]
		switch {
		case keyword == "properties" && known:
			if err := violates(sub.(map[string]any), value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		case keyword == "additionalProperties" && !known && arg == false:
			return fmt.Errorf("%s is unknown", name)
		case keyword == "additionalProperties" && !known:
			if err := violates(arg.(map[string]any), value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}
