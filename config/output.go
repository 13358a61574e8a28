package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// Validation is the result of a Load for programs: an object with the lists "errors" and
// "warnings". Each item has "key" and "message".
type Validation struct {
	Errors   []Problem `json:"errors"`
	Warnings []Problem `json:"warnings"`
}

// NewValidation makes a Validation from the results of Load. Its lists are never nil, so
// that JSON also contains lists.
func NewValidation(warnings []Problem, err error) Validation {
	v := Validation{Errors: []Problem{}, Warnings: append([]Problem{}, warnings...)}
	var invalid *InvalidError
	switch {
	case errors.As(err, &invalid):
		v.Errors = append(v.Errors, invalid.Problems...)
	case err != nil:
		v.Errors = append(v.Errors, Problem{Message: err.Error()})
	}
	return v
}

// Effective is a Config for people and programs, and a configuration file that leads to the
// same Config. It contains all effective settings, except secrets and those that only the
// environment may contain. Durations have Go's form, such as "5m0s".
type Effective struct{ members []member }

// member is a name in a JSON object, and its value.
type member struct {
	name  string
	value any // an *Effective for an object
}

// MarshalJSON writes an object with the members in their order.
func (e Effective) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // the caller decides
	text.WriteByte('{')
	for i, m := range e.members {
		if i > 0 {
			text.WriteByte(',')
		}
		if err := encoder.Encode(m.name); err != nil {
			return nil, err
		}
		text.WriteByte(':')
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// add adds a value under a path. It creates missing objects.
func (e *Effective) add(path string, value any) {
	name, rest, nested := strings.Cut(path, ".")
	if !nested {
		e.members = append(e.members, member{name, value})
		return
	}
	i := slices.IndexFunc(e.members, func(m member) bool { return m.name == name })
	if i < 0 {
		i = len(e.members)
		e.members = append(e.members, member{name, &Effective{}})
	}
	e.members[i].value.(*Effective).add(rest, value)
}

// NewEffective makes an Effective from a Config, section by section. The Config is as it
// was loaded, without ForgetTexts.
func NewEffective(cfg *Config) Effective {
	var e Effective
	e.addSettings(section(""), cfg)
	e.addConjur(&cfg.Conjur)
	cluster := section("kubernetes")
	if cfg.Mode != ModeStandalone {
		cluster = slices.DeleteFunc(cluster, func(s setting) bool { return s.name == "kubernetes.namespaces" })
	}
	e.addSettings(cluster, cfg)
	if cfg.Destination == DestinationFile {
		e.add("targets", effectiveTargets(cfg))
		return e
	}
	e.addSaid(within("identities"), cfg.said.process)
	e.addSecrets(cfg)
	if cfg.Mode == ModeStandalone {
		e.addSettings(section("standalone"), cfg)
	}
	if len(cfg.Rotation.Sets) > 0 {
		e.addSettings(section("rotation"), cfg)
		e.addSaid(within("rotation.every", "rotation.identity"), cfg.said.process)
		e.addSets(cfg)
	}
	return e
}

// within returns the settings of the configuration file with these names.
func within(names ...string) []setting {
	return slices.DeleteFunc(slices.Clone(fileSettings()), func(s setting) bool { return !slices.Contains(names, s.name) })
}

// addSettings adds the values that a struct has for the settings of a table, if they are
// not empty; of points to the struct. It leaves out a Boolean that is off by default, and
// that only some modes have.
func (e *Effective) addSettings(table []setting, of any) {
	for _, s := range table {
		if s.field == "" || s.envOnly {
			continue
		}
		v := s.in(reflect.ValueOf(of))
		switch value := v.Interface().(type) {
		case secret.Value, Conjur, []RotatedSet:
		case time.Duration:
			switch {
			case s.kind == kindInteger:
				e.add(s.name, int(value.Seconds()))
			case value != 0 || s.follows == "":
				e.add(s.name, value.String())
			}
		case bool:
			if value || s.follows == "" || s.def == "" {
				e.addBoolean(s, value)
			}
		default:
			if !v.IsZero() || v.Kind() == reflect.Int {
				e.add(s.name, value)
			}
		}
	}
}

// addBoolean adds a Boolean, or the one of two allowed values that it represents.
func (e *Effective) addBoolean(s setting, is bool) {
	if s.truth == "" {
		e.add(s.name, is)
		return
	}
	i := slices.IndexFunc(s.allowed, func(text string) bool { return (text == s.truth) == is })
	e.add(s.name, s.allowed[i])
}

// addConjur adds the connection settings of Conjur: those that the authenticator uses. If
// the authenticator is unknown, it adds those that differ from their defaults.
func (e *Effective) addConjur(c *Conjur) {
	var unset Conjur
	fill(conjurSettings(), item{}, reflect.ValueOf(&unset))
	a, known := authenticatorNamed(c.AuthnType)
	e.addSettings(slices.DeleteFunc(slices.Clone(conjurSettings()), func(s setting) bool {
		if s.envOnly || !slices.Contains(credentialSettings(), s.name) || slices.Contains(a.settings(), s.name) {
			return false
		}
		return known || s.in(reflect.ValueOf(c)).Equal(s.in(reflect.ValueOf(&unset)))
	}), c)
}

// addSecrets adds the listed Secrets. An annotation or a variable only names them.
func (e *Effective) addSecrets(cfg *Config) {
	if cfg.said.process["kubernetes.secrets"].node != nil {
		e.addSaid(within("kubernetes.secrets"), cfg.said.process)
		return
	}
	var secrets []Effective
	for _, def := range cfg.Kubernetes.Definitions {
		secrets = append(secrets, Effective{[]member{{"name", def.Name}}})
	}
	if secrets != nil {
		e.add("kubernetes.secrets", secrets)
	}
}

// addSets adds the sets that are rotated, with the defaults that depend on their kinds.
func (e *Effective) addSets(cfg *Config) {
	table := within("rotation.sets")[0].items
	var sets []Effective
	for i, set := range cfg.Rotation.Sets {
		it := maps.Clone(cfg.said.process["rotation.sets"].items[i])
		for name, is := range map[string]time.Duration{set.keepName(): set.Keep, "confirm.wait": set.Confirm.Wait} {
			if !it[name].set && is > 0 {
				it[name] = value{text: is.String(), set: true}
			}
		}
		var of Effective
		of.addSaid(table, it)
		sets = append(sets, of)
	}
	e.add("rotation.sets", sets)
}

// effectiveTargets returns the targets, each with the name of its file and its format.
func effectiveTargets(cfg *Config) []Effective {
	list := []Effective{}
	for _, t := range cfg.Targets {
		var of Effective
		of.add("name", t.Group)
		for _, s := range groupSettings() {
			switch s.name {
			case "path":
				of.add(s.name, t.File.Path)
			case "format":
				of.add(s.name, t.Format)
			case "permissions":
				of.add(s.name, strings.TrimPrefix(t.File.Mode.Perm().String(), "-"))
			default:
				of.addSaid([]setting{s}, cfg.said.groups[t.Group])
			}
		}
		list = append(list, of)
	}
	return list
}

// ForgetTexts frees the memory that only NewEffective needs.
func (c *Config) ForgetTexts() { c.said = values{} }

// addSaid adds the values that sources have for the settings of a table.
func (e *Effective) addSaid(table []setting, of item) {
	for _, s := range table {
		if val := of[s.name]; val.set {
			e.add(s.name, s.said(val))
		}
	}
}

// said returns a value in the form of the configuration file.
func (s setting) said(val value) any {
	switch {
	case s.items != nil:
		return s.saidItems(val)
	case s.kind == kindEntries:
		return saidEntries(val)
	case val.node != nil:
		return val.names()
	case s.kind == kindBoolean, s.kind == kindNodeSecrets && (val.text == "true" || val.text == "false"):
		return val.isTrue()
	case s.kind == kindInteger:
		n, _ := s.integer(val.text) // reported when it was read
		return n
	}
	return val.text
}

// saidItems returns the items of a list, of a map, or of the single map.
func (s setting) saidItems(val value) any {
	items := make([]Effective, len(val.items))
	for i, it := range val.items {
		items[i].addSaid(s.items, it)
	}
	switch s.kind {
	case kindObject:
		return items[0]
	case kindMap:
		var e Effective
		for i, key := range val.keys {
			e.members = append(e.members, member{key, items[i]})
		}
		return e
	}
	return items
}

// saidEntries returns the entries of a group. An annotation contains them as YAML.
func saidEntries(val value) any {
	node := val.node
	if node == nil {
		var doc yaml.Node
		if yaml.Unmarshal([]byte(val.text), &doc) != nil || doc.Kind != yaml.DocumentNode {
			return val.text
		}
		node = doc.Content[0]
	}
	return ordered(node)
}

// ordered returns a YAML value for JSON. The keys of maps keep their order.
func ordered(node *yaml.Node) any {
	node = definitions.Resolve(node)
	switch node.Kind {
	case yaml.SequenceNode:
		list := []any{}
		for _, n := range node.Content {
			list = append(list, ordered(n))
		}
		return list
	case yaml.MappingNode:
		var e Effective
		for i := 0; i+1 < len(node.Content); i += 2 {
			e.members = append(e.members, member{node.Content[i].Value, ordered(node.Content[i+1])})
		}
		return e
	}
	return node.Value
}

// effectiveTarget is one target of an Explanation.
type effectiveTarget struct {
	Key           targets.Key    `json:"key"`
	Group         string         `json:"group"`
	Path          string         `json:"path"` // with the secrets folder in front
	Mode          string         `json:"mode"` // octal, such as "0644"
	Format        targets.Format `json:"format"`
	DotenvReaders []string       `json:"dotenvReaders,omitempty"`
	Template      string         `json:"template,omitempty"` // "inline", or the file's path
	// TemplateConfigMap is the location of the template, as "name/key".
	TemplateConfigMap string          `json:"templateConfigMap,omitempty"`
	Entries           []targets.Entry `json:"entries"`
}

func newEffectiveTarget(folders Folders, t *targets.Target) effectiveTarget {
	e := effectiveTarget{
		Key: t.Key, Group: t.Group, Format: t.Format, DotenvReaders: t.DotenvReaders,
		Path:    path.Join(folders.Secrets, t.File.Path),
		Mode:    fmt.Sprintf("%04o", t.File.Mode.Perm()),
		Entries: []targets.Entry{},
	}
	e.Template, e.TemplateConfigMap = effectiveTemplate(folders, t)
	e.Entries = append(e.Entries, t.Entries...)
	return e
}

// effectiveTemplate returns the location of a template.
func effectiveTemplate(folders Folders, t *targets.Target) (template, configMap string) {
	switch {
	case t.Template.Inline != "":
		return "inline", ""
	case t.Template.File != "":
		return path.Join(folders.Templates, t.Template.File), ""
	case t.Template.ConfigMap != (targets.ConfigMapKey{}):
		return "", t.Template.ConfigMap.Name + "/" + t.Template.ConfigMap.Key
	}
	return "", ""
}

// Explanation contains all settings of one target, for people and programs.
type Explanation struct {
	effectiveTarget
	Variables []string  `json:"variables"` // each once; "*" or "prefix/*" for all
	Triggers  []Trigger `json:"triggers"`
}

// Trigger is an event that makes Syncer check a target again.
type Trigger struct {
	Kind string `json:"kind"` // "start", "list", "poll", "template" or "destination"
	When string `json:"when"` // in words
}

// Explain returns the explanation of the target with a key or a group of that name, and
// false if there is none.
func Explain(cfg *Config, name string) (Explanation, bool) {
	for _, t := range cfg.Targets {
		if t.Group == name || string(t.Key) == name {
			return explain(cfg, t), true
		}
	}
	return Explanation{}, false
}

func explain(cfg *Config, t *targets.Target) Explanation {
	e := Explanation{
		effectiveTarget: newEffectiveTarget(cfg.Folders, t),
		Variables:       append([]string{}, t.Variables()...),
		Triggers:        []Trigger{{"start", "once at the start"}},
	}
	for _, entry := range t.Entries {
		if entry.All() {
			e.Variables = append(e.Variables, entry.Variable)
		}
		if entry.Override != "" {
			e.Variables = append(e.Variables, entry.Override)
		}
	}
	if cfg.Mode.OneShot() || !cfg.Refresh.Enabled {
		return e
	}
	if t.NeedsList() {
		e.Triggers = append(e.Triggers, Trigger{"list", fmt.Sprintf("when there is another variable in Conjur, within %v", cfg.Refresh.Interval)})
	}
	e.Triggers = append(e.Triggers,
		Trigger{"poll", fmt.Sprintf("when a variable's value changes in Conjur, within %v", cfg.Refresh.Interval)},
		Trigger{"destination", fmt.Sprintf("when the file is %s, within %v", lost(cfg), cfg.Refresh.Interval)})
	switch {
	case t.Template.File != "":
		e.Triggers = append(e.Triggers, Trigger{"template", "when the file " + e.Template + " changes"})
	case e.TemplateConfigMap != "":
		e.Triggers = append(e.Triggers, Trigger{"template", "when the ConfigMap " + t.Template.ConfigMap.Name + " changes"})
	}
	return e
}

// lost describes when Syncer writes a file again.
func lost(cfg *Config) string {
	if cfg.RestoreDeletedFiles {
		return "missing or altered"
	}
	return "altered"
}
