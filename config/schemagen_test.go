package config

import (
	"strings"
	"time"
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
	schema := s.valueSchema(path)
	if s.items != nil {
		of := d.tableSchema(path+".", s.items)
		if s.short {
			of = object{"anyOf": []object{s.items[0].valueSchema(path + "." + s.items[0].name), of}}
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
func (s setting) valueSchema(path string) object {
	o, text := object{}, object{"type": "string"}
	pattern, named := patternsOfNames()[path]
	if !named {
		pattern, named = patternsOfNames()[s.name]
	}
	if named {
		text["pattern"] = pattern
	}
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
		list := object{"type": "array", "items": text}
		if s.required {
			list["minItems"] = 1
		}
		o["anyOf"] = []object{text, list}
		if strings.HasPrefix(path, "rotation.sets.redis.") || strings.HasPrefix(path, "rotation.sets.mysql.") {
			break // also one user
		}
		if s.name == "users" || s.name == "hosts" {
			o = object{"type": "array", "minItems": 2, "uniqueItems": true, "items": text}
		}
	case kindNodeSecrets:
		o["anyOf"] = []object{{"type": "boolean"}, {"type": "string", "minLength": 1}}
	case kindNames:
		o["type"], o["minItems"], o["items"] = "array", 1, text
	case kindEntries:
		o["anyOf"] = []object{{"const": "*"}, {"type": "array", "minItems": 1, "items": entrySchema()}}
	default:
		o = text
	}
	if s.kind == kindChoice {
		o["enum"] = s.allowed
	}
	if pattern, ok := patterns()[s.kind]; ok {
		o["pattern"] = pattern
	}
	if s.kind == kindObjectName {
		o["maxLength"] = 253
	}
	if pattern, ok := tooShort[s.least]; ok {
		o["not"] = object{"pattern": pattern}
	}
	if s.required && s.emptyIsUnset() {
		o["minLength"] = 1
	}
	return o
}

// The forms of names, and the beginnings of URLs to which secrets may be sent.
const (
	label     = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
	subdomain = label + `(\.` + label + `)*`
	workload  = "([dD]eployment|[sS]tateful[sS]et|[dD]aemon[sS]et)/" + subdomain
	server    = `(\[[0-9A-Fa-f:.%a-z]+\]|[^@:/\s]+)`
	port      = "0*[1-9][0-9]{0,4}"
	host      = `([^/?#@:\[\]\s]+|\[[0-9A-Fa-f:.]+\])(:[0-9]*)?`
	httpsURL  = "https://" + host
	clearURL  = `http://(localhost|127[.0-9]+|\[::1\])(:[0-9]*)?`
	part      = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?" // of a label
	key       = "(" + subdomain + "/)?" + part
	// requirement is one of a label selector.
	requirement = `(!?\s*` + key + "|" + key + `\s*(=|==|!=)\s*(` + part + ")?|" + key + `\s+(in|notin)\s*\([^()]*\)|` + key + `\s*[<>]\s*[0-9]+)`
)

// patternsOfNames are the patterns of the settings that their kind does not imply, by their
// names. A line break at the end of a setting of the connection is removed.
func patternsOfNames() map[string]string {
	const encrypted = "^(" + httpsURL + "|" + clearURL + ")([/?#].*)?$"
	var all, clear []string // authenticators, and those that show no certificate
	for _, a := range authenticators() {
		name := string(a.name)
		if a.service {
			name += "/[^?#]*[^/?#]"
		}
		if all = append(all, name); !a.shows {
			clear = append(clear, name)
		}
	}
	authn := func(names []string) string { return "(/[^?#]*)?/(" + strings.Join(names, "|") + ")" }
	list := func(of string) string { return `^[\s,]*(` + of + `([\s,]+|$))*$` }
	return map[string]string{
		"conjur.applianceUrl":          "^((" + httpsURL + "|" + clearURL + `)(/[^?#]*)?[\r\n]*)?$`,
		"conjur.authnUrl":              "^((" + httpsURL + authn(all) + "|" + clearURL + authn(clear) + `)/*[\r\n]*)?$`,
		"conjur.metadataUrl":           `^(https?://` + host + `/*[\r\n]*)?$`,
		"kubernetes.namespaceSelector": `^(\s*` + requirement + `\s*(,\s*` + requirement + `\s*)*)?$`,
		"kubernetes.namespaces":        `^(\*|` + label + ")$",
		"namespaces":                   "^" + label + "$",
		"secrets":                      "^" + label + "/" + subdomain + "$",
		"restart":                      list(workload),
		"confirm.restarted":            list(workload),
		"pullSecretFor":                list(subdomain),
		"address":                      "^" + server + ":" + port + "$",
		"pooler":                       "^(/[^@:]+|" + server + "):" + port + "$",
		"api":                          "^https?://" + host + "/*$",
		"url":                          encrypted,
		"endpoint":                     encrypted,
		"conjur.account":               `^[^\x00-\x1f\x7f]*[\r\n]*$`,
		"conjur.login":                 `^[^\x00-\x1f\x7f]*[\r\n]*$`,
		"migrate":                      "^(cronjob/" + subdomain + ")?$",
		"account":                      "@",
		"cron":                         `^\s*([-0-9A-Za-z*/,?]+(\s+[-0-9A-Za-z*/,?]+){4}|@[a-z]+(\s.*)?)\s*$`,

		"rotation.sets.postgresql.address": "^(/[^@:]+|" + server + "):" + port + "/[^?@/]+$",
	}
}

// tooShort are texts that are shorter than a shortest duration: one number and its unit.
var tooShort = map[time.Duration]string{
	time.Second:     belowSecond + `|0*(\.[0-9]*)?s)$`,
	3 * time.Second: belowSecond + `|0*[0-2]?(\.[0-9]*)?s)$`,
	time.Hour:       belowSecond + `|[0-9]{1,3}(\.[0-9]*)?s|[0-5]?[0-9](\.[0-9]*)?m)$`,
}

const belowSecond = `^\+?(0|[0-9]{1,3}(\.[0-9]*)?ms|[0-9]{1,6}(\.[0-9]*)?[uµμ]s|[0-9]{1,9}(\.[0-9]*)?ns|0+(\.0*)?[mhd]`

// patterns are what can be said of a text without words. A text that is empty,
// where that has no meaning, is not set.
func patterns() map[kind]string {
	return map[kind]string{
		kindDuration:    `^(\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+|[+-]?0)?$`,
		kindPeriod:      `^(([0-9]{1,5}d)?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*|0)$`,
		kindSignal:      "^SIG[A-Z0-9]+$",
		kindPermissions: "^(-?rw[x-]([r-][w-][x-]){2})?$",
		kindAddress:     "^(.*:[0-9]{1,5})?$",
		kindUser:        `^([0-9]+|[A-Za-z_][A-Za-z0-9._-]*\$?)?$`,
		kindCommand:     "^[^/]*$",
		kindConfigMap:   "^(" + subdomain + "(/[A-Za-z0-9._-]+)?)?$",
		kindObjectName:  "^(" + subdomain + ")?$",
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
