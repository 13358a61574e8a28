package config

import (
	"reflect"
	"testing"
)

// object is a JSON object.
type object map[string]any

// fileSchema is the JSON Schema of the configuration file, made from its types.
func fileSchema() object {
	schema := structSchema(reflect.TypeFor[file](), "", settings())
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "Syncer's configuration file"
	schema["type"] = []string{"object", "null"}
	return schema
}

// structSchema is that of a map whose settings are in a table, under names that
// begin with below.
func structSchema(t reflect.Type, below string, table []setting) object {
	properties, required := object{}, []string{}
	for _, field := range reflect.VisibleFields(t) {
		if field.Anonymous {
			continue
		}
		key := field.Tag.Get("yaml")
		path := join(below, key)
		s, _ := find(table, path)
		if s.required {
			required = append(required, key)
		}
		properties[key] = fieldSchema(field, path, s, table)
	}
	schema := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

func fieldSchema(field reflect.StructField, path string, s setting, table []setting) object {
	description := plainText(s.doc) + field.Tag.Get("doc")
	if s.def != "" {
		description += " Default: " + plainText(s.def) + "."
	}
	var schema object
	switch f := reflect.New(field.Type).Interface().(type) {
	case leaf:
		schema = s.schema(f)
	case interface{ elements() (reflect.Type, bool) }:
		of, list := f.elements()
		schema = object{"type": "object", "additionalProperties": itemSchema(of)}
		if list {
			schema = object{"type": "array", "items": itemSchema(of)}
		}
		if s.kind == kindSecrets {
			schema["minItems"] = 1
		}
	default:
		return structSchema(field.Type, path, table)
	}
	schema["description"] = description
	return schema
}

// elements is the type of the items, and whether they are in a list.
func (listField[T]) elements() (reflect.Type, bool) { return reflect.TypeFor[T](), true }
func (mapField[T]) elements() (reflect.Type, bool)  { return reflect.TypeFor[T](), false }

// itemSchema is that of an item of a list or a map.
func itemSchema(t reflect.Type) object {
	table := reflect.Zero(t).Interface().(interface{ table() []setting }).table()
	schema := structSchema(t, "", table)
	if short, ok := reflect.New(t).Interface().(interface{ short() *textField }); ok {
		return object{"anyOf": []object{table[0].schema(short.short()), schema}}
	}
	return schema
}

// schema is that of one value.
func (s setting) schema(of leaf) object {
	o := object{}
	switch of.(type) {
	case *booleanField:
		o["type"] = "boolean"
	case *integerField:
		o["type"], o["minimum"] = "integer", s.min
		if s.max != 0 {
			o["maximum"] = s.max
		}
	case *percentField:
		o["anyOf"] = []object{{"type": "integer", "minimum": 0, "maximum": 100}, {"type": "string", "pattern": "^(off|[+-]?0*([0-9]{1,2}|100)%?)$"}}
	case *namesField:
		o["type"], o["minItems"], o["items"] = "array", 1, object{"type": "string"}
	case *entriesField:
		o["anyOf"] = []object{{"const": "*"}, {"type": "array", "minItems": 1, "items": entrySchema()}}
	default:
		o["type"] = "string"
	}
	if s.kind == kindChoice {
		o["enum"] = s.allowed
	}
	if pattern, ok := patterns()[s.kind]; ok {
		o["pattern"] = pattern
	}
	if s.required && s.emptyIsUnset() {
		o["minLength"] = 1
	}
	return o
}

// patterns are what can be said of a text without words. A text that is empty,
// where that has no meaning, is not set.
func patterns() map[kind]string {
	const label = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
	return map[kind]string{
		kindDuration:    `^(\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+|[+-]?0)?$`,
		kindSignal:      "^SIG[A-Z0-9]+$",
		kindPermissions: "^(-?rw[x-]([r-][w-][x-]){2})?$",
		kindAddress:     "^(.*:[0-9]{1,5})?$",
		kindUser:        `^([0-9]+|[A-Za-z_][A-Za-z0-9._-]*\$?)?$`,
		kindCommand:     "^[^/]*$",
		kindConfigMap:   `^(` + label + `(\.` + label + `)*(/[A-Za-z0-9._-]+)?)?$`,
		kindObjectName:  `^(` + label + `(\.` + label + `)*)?$`,
		kindNamespace:   "^(" + label + ")?$",
		kindLabel:       "^(" + label + ")?$",
	}
}

func entrySchema() object {
	text := []string{"string", "number", "boolean"}
	return object{"anyOf": []object{
		{"type": text},
		{
			"type": "object", "minProperties": 1, "maxProperties": 2,
			"properties":           object{"content-type": object{"enum": []string{"text", "base64"}}},
			"additionalProperties": object{"type": text},
		},
	}}
}

// TestTypesAndTablesNameTheSame holds the types of the file against the tables
// of settings: a leaf for each setting, and of the type that its kind has.
func TestTypesAndTablesNameTheSame(t *testing.T) {
	for _, item := range []interface{ table() []setting }{&file{}, &fileTarget{}, &fileSecret{}, &fileGroup{}, &fileVariable{}, &fileIdentity{}} {
		of := reflect.TypeOf(item).Elem()
		leaves := leavesOf(of, "")
		for _, s := range item.table() {
			field, ok := leaves[s.name]
			switch delete(leaves, s.name); {
			case s.envOnly == ok:
				t.Errorf("%v: the setting %s: in the types %v, only a variable %v", of, s.name, ok, s.envOnly)
			case ok && !fits(s.kind, field):
				t.Errorf("%v: the setting %s of the kind %q has the type %v", of, s.name, s.kind, field)
			}
		}
		delete(leaves, "targets") // lists have tables of their own
		delete(leaves, "identities")
		for name := range leaves {
			t.Errorf("%v: there is no setting %s", of, name)
		}
	}
}

func leavesOf(t reflect.Type, below string) map[string]any {
	leaves := map[string]any{}
	for _, field := range reflect.VisibleFields(t) {
		path := join(below, field.Tag.Get("yaml"))
		switch f := reflect.New(field.Type).Interface().(type) {
		case leaf, composite:
			leaves[path] = f
		default:
			if field.Anonymous {
				continue
			}
			for name, f := range leavesOf(field.Type, path) {
				leaves[name] = f
			}
		}
	}
	return leaves
}

// fits tells whether a kind of setting has a type in the file.
func fits(k kind, field any) bool {
	switch field.(type) {
	case *booleanField:
		return k == kindBoolean
	case *integerField:
		return k == kindInteger
	case *percentField:
		return k == kindPercent
	case *namesField:
		return k == kindNames
	case *entriesField:
		return k == kindEntries
	case *textField:
		return k != kindBoolean && k != kindInteger && k != kindPercent && k != kindNames && k != kindEntries
	}
	return k == kindSecrets || k == kindMap
}
