package render

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// args are the arguments of a call, converted to the kinds of its parameters.
type args []any

func (a args) text(i int) string         { return a[i].(string) }
func (a args) int(i int) int             { return a[i].(int) }
func (a args) list(i int) []any          { return a[i].([]any) }
func (a args) dict(i int) map[string]any { return a[i].(map[string]any) }

// kinds of parameters. Each converts a value, or returns its fault. always means that the
// value is of the wrong type, so that no other secret would help.
var kinds = map[string]func(v any) (converted any, fault string, always bool){
	"any": func(v any) (any, string, bool) { return v, "", false },
	"bytes": func(v any) (any, string, bool) {
		if _, ok := v.(string); ok {
			return v, "", false
		}
		return nil, "must be text, not " + typeName(v), true
	},
	"text": func(v any) (any, string, bool) {
		text, ok := v.(string)
		switch {
		case !ok:
			return nil, "must be text, not " + typeName(v), true
		case !utf8.ValidString(text):
			return nil, "is not UTF-8", false
		}
		return text, "", false
	},
	"scalar": func(v any) (any, string, bool) {
		if text, ok := scalar(v); ok {
			return text, "", false
		}
		return nil, "must be text, a number or a Boolean, not " + typeName(v), true
	},
	"printed": func(v any) (any, string, bool) { // fmt.Sprint separates all but text
		text, ok := scalar(v)
		if _, isText := v.(string); isText {
			return text, "", false
		}
		if ok {
			return jsonNumber{text}, "", false
		}
		return nil, "must be text, a number or a Boolean, not " + typeName(v), true
	},
	"int": func(v any) (any, string, bool) {
		if n, ok := integer(v); ok {
			return n, "", false
		}
		return nil, "must be a whole number, not " + typeName(v), true
	},
	"number": func(v any) (any, string, bool) {
		if n, ok := integerOf(v); ok {
			return n, "", false
		}
		if _, ok := v.(string); ok {
			return nil, "is not a whole number of at most 64 bits", false
		}
		return nil, "must be a whole number, not " + typeName(v), true
	},
	"bool": func(v any) (any, string, bool) {
		if _, ok := v.(bool); ok {
			return v, "", false
		}
		return nil, "must be true or false, not " + typeName(v), true
	},
	"list": func(v any) (any, string, bool) {
		if list, ok := toList(v); ok {
			return list, "", false
		}
		return nil, "must be a list, not " + typeName(v), true
	},
	"dict": func(v any) (any, string, bool) {
		if dict, ok := v.(map[string]any); ok && dict != nil {
			return dict, "", false
		}
		return nil, "must be a map, not " + typeName(v), true
	},
}

// arguments checks and converts the arguments of a call.
func (f *function) arguments(given []any) (args, error) {
	params := strings.Fields(f.params)
	last := len(params) - 1
	least, variadic := len(params), strings.HasSuffix(params[last], "...")
	if variadic {
		least--
	}
	if len(given) < least || len(given) > least && !variadic {
		takes := fmt.Sprint(least)
		if variadic {
			takes = "at least " + takes
		}
		return nil, &functionError{f.name, fmt.Sprintf("wrong number of arguments: it takes %s, not %d", takes, len(given)), true}
	}
	a := make(args, len(given))
	for i, v := range given {
		converted, fault, always := kinds[strings.TrimSuffix(params[min(i, last)], "...")](v)
		if fault != "" {
			return nil, &functionError{f.name, string(wrong(i, fault)), always}
		}
		a[i] = converted
	}
	return a, nil
}

// wrong is the failure for a fault of the argument at an index.
func wrong(i int, fault string) failure { return failure(fmt.Sprintf("argument %d %s", i+1, fault)) }

// typeName names the type of a value for an error.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "text"
	case bool:
		return "a Boolean"
	case float64, jsonNumber:
		return "a number with digits after the point or an exponent"
	case templateSecret:
		return "a secret without .Value"
	case templateVersion:
		return "a version without .Part"
	}
	switch value := reflect.ValueOf(v); {
	case value.CanInt(), value.CanUint():
		return "a whole number"
	case value.Kind() == reflect.Slice:
		return "a list"
	case value.Kind() == reflect.Map:
		return "a map"
	}
	return "a value of another type"
}

// toList returns any slice as a list.
func toList(v any) ([]any, bool) {
	if list, ok := v.([]any); ok {
		return list, true
	}
	value := reflect.ValueOf(v)
	if value.Kind() != reflect.Slice {
		return nil, false
	}
	few(value.Len())
	list := make([]any, value.Len())
	for i := range list {
		list[i] = value.Index(i).Interface()
	}
	return list, true
}

// tooMuch returns the error for arguments that exceed most bytes.
func tooMuch(name string, most int) error {
	return &limitError{fmt.Sprintf("the arguments of %s have more than %d bytes", name, most)}
}
