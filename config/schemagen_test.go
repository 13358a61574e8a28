package config

import (
	"strings"
)

// object is a JSON object.
type object map[string]any

// fileSchema is the JSON Schema of the configuration file, made from its table.
func fileSchema(d *documentation) object {
	schema := d.tableSchema("", fileSettings())
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "Syncer's configuration file"
	schema["type"] = []string{"object", "null"}
	return schema
}

// tableSchema is that of a map with the settings of a table, whose paths begin with
// a prefix.
func (d *documentation) tableSchema(prefix string, table []setting) object {
	schema := mapSchema()
	for _, s := range table {
		if s.envOnly {
			continue
		}
		in, path := schema, strings.Split(s.name, ".")
		for _, name := range path[:len(path)-1] {
			below := in["properties"].(object)
			if below[name] == nil {
				below[name] = mapSchema()
			}
			in = below[name].(object)
		}
		name := path[len(path)-1]
		in["properties"].(object)[name] = d.schema(prefix+s.name, s)
		if s.required {
			required, _ := in["required"].([]string)
			in["required"] = append(required, name)
		}
	}
	return schema
}

func mapSchema() object {
	return object{"type": "object", "additionalProperties": false, "properties": object{}}
}

// schema is that of a setting.
func (d *documentation) schema(path string, s setting) object {
	schema := s.valueSchema()
	if s.items != nil {
		of := d.tableSchema(path+".", s.items)
		if s.short {
			of = object{"anyOf": []object{s.items[0].valueSchema(), of}}
		}
		switch s.kind {
		case kindMap:
			schema = object{"type": "object", "additionalProperties": of}
		case kindObject:
			schema = of
		case kindSecrets:
			schema = object{"type": "array", "items": of, "minItems": 1}
		default:
			schema = object{"type": "array", "items": of}
		}
	}
	schema["description"] = plainText(d.docs[path])
	if def := s.fallback(); def != "" {
		schema["description"] = plainText(d.docs[path] + " Default: " + def + ".")
	}
	return schema
}

// valueSchema is that of one value.
func (s setting) valueSchema() object {
	o := object{}
	switch s.kind {
	case kindBoolean:
		o["type"] = "boolean"
	case kindInteger:
		o["type"], o["minimum"] = "integer", s.min
		if s.max != 0 {
			o["maximum"] = s.max
		}
	case kindPercent:
		o["anyOf"] = []object{{"type": "integer", "minimum": 0, "maximum": 100}, {"type": "string", "pattern": "^(off|[+-]?0*([0-9]{1,2}|100)%?)$"}}
	case kindTexts:
		o["anyOf"] = []object{{"type": "string"}, {"type": "array", "items": object{"type": "string"}}}
	case kindNodeSecrets:
		o["anyOf"] = []object{{"type": "boolean"}, {"type": "string", "minLength": 1}}
	case kindNames:
		o["type"], o["minItems"], o["items"] = "array", 1, object{"type": "string"}
	case kindEntries:
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
		kindPeriod:      `^(([0-9]{1,5}d)?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*|0)$`,
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
			"type": "object", "minProperties": 1, "maxProperties": 4,
			"properties":           object{"content-type": object{"enum": []string{"text", "base64"}}},
			"additionalProperties": object{"type": text},
		},
	}}
}
