package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/render"
)

var update = flag.Bool("update", false, "write the generated files of docs anew")

// assertCurrent compares a generated file with what it should be.
func assertCurrent(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale; run go generate ./config", path)
	}
}

func TestSchemaIsCurrent(t *testing.T) {
	schema, err := json.MarshalIndent(fileSchema(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	assertCurrent(t, "../docs/config.schema.json", append(schema, '\n'))
}

func TestReferenceIsCurrent(t *testing.T) {
	assertCurrent(t, "../docs/configuration.md", []byte(reference()))
}

// object is a JSON object.
type object map[string]any

// fileSchema is the JSON Schema of the configuration file.
func fileSchema() object {
	properties := object{}
	for _, s := range settings() {
		if s.envOnly {
			continue
		}
		at, name := properties, s.name
		if parent, child, ok := strings.Cut(s.name, "."); ok {
			if at[parent] == nil {
				at[parent] = object{"type": "object", "additionalProperties": false, "properties": object{}}
			}
			at, name = at[parent].(object)["properties"].(object), child
		}
		at[name] = s.schema()
	}
	properties[fieldTargets] = object{
		"type": "array", "description": "What is kept in sync.", "items": targetSchema(),
	}
	return object{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "Syncer's configuration file",
		"type":                 []string{"object", "null"},
		"additionalProperties": false,
		"properties":           properties,
	}
}

func targetSchema() object {
	properties := object{fieldName: object{
		"type": "string", "minLength": 1, "description": "The name of the group; no two may have one name.",
	}}
	for _, s := range groupSettings() {
		properties[s.name] = s.schema()
	}
	return object{
		"type": "object", "additionalProperties": false, "properties": properties,
		"required": []string{fieldName, nameSecrets},
	}
}

func (s setting) schema() object {
	description := plainText(s.doc)
	if s.def != "" {
		description += " Default: " + plainText(s.def) + "."
	}
	o := object{"type": "string", "description": description}
	switch s.kind {
	case kindBoolean:
		o["type"] = "boolean"
	case kindInteger:
		o["type"], o["minimum"] = "integer", s.min
		if s.max != 0 {
			o["maximum"] = s.max
		}
	case kindDuration:
		o["pattern"] = `^\+?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`
	case kindChoice:
		o["enum"] = s.allowed
	case kindSignal:
		o["pattern"] = "^SIG[A-Z0-9]+$"
	case kindPermissions:
		o["pattern"] = "^-?rw[x-]([r-][w-][x-]){2}$"
	case kindNames:
		o["type"], o["minItems"], o["items"] = "array", 1, object{"type": "string"}
	case kindEntries:
		delete(o, "type")
		o["anyOf"] = []object{{"const": "*"}, {"type": "array", "minItems": 1, "items": entrySchema()}}
	}
	return o
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

// plainText drops the marks of code.
func plainText(markdown string) string { return strings.ReplaceAll(markdown, "`", "") }

// reference is docs/configuration.md.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	b.WriteString("## The process\n\n")
	b.WriteString("| annotation `conjur.org/…` | variable | in the file | value | default |\n|---|---|---|---|---|\n")
	for _, s := range settings() {
		file := code(s.name)
		if s.envOnly {
			file = "–"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s<br>%s | %s |\n", code(s.annotation), code(s.env), file, s.values(), cell(s.doc), orDash(cell(s.def)))
	}
	b.WriteString("\n## Secret groups\n\nEach group is one file. `{g}` is the group's name; in the configuration file a group is an item of `targets`, with its name in `name`.\n\n")
	b.WriteString("| annotation `conjur.org/…` | in the file | value | default |\n|---|---|---|---|\n")
	for _, s := range groupSettings() {
		fmt.Fprintf(&b, "| %s | %s | %s<br>%s | %s |\n", code(s.annotation+"{g}"), code(s.name), s.values(), cell(s.doc), orDash(cell(s.def)))
	}
	b.WriteString(referenceTail)
	b.WriteString("\n### Template functions\n\nBesides the built-in functions of Go's text/template, none of which reads the environment, files, the network or the clock: `" +
		strings.Join(render.Functions(), "` `") + "`.\n")
	return b.String()
}

// values describes what a setting may be.
func (s setting) values() string {
	switch {
	case len(s.notYet) > 0:
		return "one of `" + strings.Join(s.allowed, "` `") + "`; **`" + strings.Join(s.notYet, "` `") + "` is not available in this version yet**"
	case s.kind == kindChoice:
		return "one of `" + strings.Join(s.allowed, "` `") + "`"
	case s.kind == kindInteger && s.max != 0:
		return fmt.Sprintf("integer, %d to %d", s.min, s.max)
	case s.kind == kindInteger:
		return fmt.Sprintf("integer, at least %d", s.min)
	}
	text := string(s.kind)
	if s.later {
		text += "; **not available in this version yet**"
	}
	return text
}

func code(text string) string {
	if text == "" {
		return "–"
	}
	return "`" + text + "`"
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// cell makes text fit into a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

const referenceHead = `<!-- Generated by go generate ./config; edit config/settings.go or config/generate_test.go instead. -->

# Configuration

Syncer is set up by Pod annotations, environment variables, and a configuration file. Names, defaults and rules are those of the Secrets Provider for Kubernetes, so that a manifest made for it works as it is; where Syncer differs is said [below](#differences).

For each setting the strongest source counts: the annotation, else the configuration file, else the variable. An empty variable is not set; neither is an empty annotation, where an empty value has no meaning. All problems are reported at once and before anything is asked of Conjur, each with the place where it was written, and Syncer then exits with status 1. An annotation of ` + "`conjur.org/`" + ` that Syncer does not know is warned of.

* **Annotations** are read from ` + "`/conjur/podinfo/annotations`" + ` (` + "`--annotations`" + `), a Downward API volume with ` + "`metadata.annotations`" + `. No such file means no annotations.
* **The configuration file** is named by ` + "`--config`" + ` or ` + "`SYNCER_CONFIG`" + `. It is YAML, and strict: what it does not know, or what has another type, is a problem. Its schema is [config.schema.json](config.schema.json).
* Secrets go below ` + "`/conjur/secrets`" + ` (` + "`--secrets-dir`" + `), templates are in ` + "`/conjur/templates`" + ` (` + "`--templates-dir`" + `), and the status files in ` + "`/conjur/status`" + ` (` + "`--status-dir`" + `).

`

const referenceTail = `
### The list of secrets

A YAML list. ` + "`- app/db/password`" + ` is the variable of this id under the alias ` + "`password`" + `, its last segment; ` + "`- pass: app/db/password`" + ` gives it the alias ` + "`pass`" + `. With ` + "`content-type: base64`" + ` beside the alias the value is decoded. A single ` + "`*`" + ` stands for all variables that the identity may read, or, with a policy path, for all below it; see [All variables](#all-variables). No alias may occur twice in a group.

` + "```yaml" + `
conjur.org/conjur-secrets.db: |
  - app/db/user
  - pass: app/db/password
  - cert: app/db/certificate
    content-type: base64
` + "```" + `

The same in the configuration file:

` + "```yaml" + `
secretsDestination: file
targets:
- name: db
  format: json
  secrets:
  - app/db/user
  - pass: app/db/password
  - cert: app/db/certificate
    content-type: base64
` + "```" + `

### All variables

With ` + "`*`" + `, or ` + "`- \"*\"`" + ` as an item, a group holds all variables that the identity can see and read, however many they are; with a policy path, or an item ` + "`- app/*`" + `, all below it. Each has its whole id for alias, such as ` + "`app/db/password`" + `, and they come in ascending order; an item that gives the same alias to a variable wins. The formats ` + "`yaml` `json` `java-properties` and `template`" + ` can hold such aliases, the others are a problem. A template goes through ` + "`.SecretsArray` or `.SecretsMap`" + `; ` + "`secret`" + ` knows the aliases of items only.

A sidecar that refreshes looks at each tick which variables there are, and adds new ones. A variable that has no value, or that may be seen and not read, is left out, with a warning in the log. One that is deleted or revoked later is taken out of the file as soon as that is proven, as with every removal; the file stays, and the process too. A list that is empty or cannot be read changes nothing.

## Differences

* ` + "`secrets-refresh-enabled`" + ` takes every Boolean (` + "`true` `1` `T` …" + `), and ` + "`false`" + ` is fine in any mode as long as no interval is set.
* The authenticator is a segment of the path of ` + "`CONJUR_AUTHN_URL`" + `; a host name that contains ` + "`authn-k8s`" + ` chooses nothing.
* Without ` + "`CONJUR_SSL_CERTIFICATE` and `CONJUR_CERT_FILE`" + ` the system's certificates are trusted.
* ` + "`MY_POD_NAMESPACE`" + ` is needed only for Kubernetes Secrets.
* A line of the annotations file may have any length.
* These are problems and no longer accepted: no secret group, a group without secrets, an empty item or an alias that occurs twice in a group, a path that leaves the secrets folder by way of a sibling (` + "`../secrets-other/x`" + `), a path that is the folder itself, a file where another group needs a folder, the format ` + "`template`" + ` without a template.
* ` + "`*`" + ` has no limit of 500 variables, stands with a policy path for the variables below it, and is not undone by a variable that has no value or may not be read.
* A file name that begins with ` + "`.syncer-`" + ` is reserved.
* ` + "`k8s-secrets`" + ` is read as YAML, so quotes, comments and Windows line ends do not become part of a name.
* Where the Secrets Provider silently takes the default, for a number below its minimum or a variable that it cannot read, Syncer does too, with a warning.
`
