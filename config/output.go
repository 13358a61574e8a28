package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
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

// Effective is a Config for people and programs. It contains all effective settings
// except secrets, under the names and in the order of the configuration file. Durations
// have Go's form, such as "5m0s".
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
		fmt.Fprintf(&text, "%q:", m.name)
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

func (e *Effective) addList(path string, names []string) {
	if len(names) > 0 {
		e.add(path, names)
	}
}

// NewEffective makes an Effective from a Config, section by section.
func NewEffective(cfg *Config) Effective {
	var e Effective
	e.addSettings(section(""), cfg)
	e.addConjur(&cfg.Conjur)
	var ids []Effective
	for _, id := range named(cfg.Identities) {
		var of Effective
		of.add("name", id.Name)
		of.addList("namespaces", id.Namespaces)
		of.addList("secrets", id.Secrets)
		of.addConjur(&id.Conjur)
		ids = append(ids, of)
	}
	if ids != nil {
		e.add("identities", ids)
	}
	e.addSettings(section("kubernetes"), cfg)
	e.addSecrets(cfg)
	if cfg.Mode == ModeStandalone {
		e.addSettings(section("standalone"), cfg)
		e.addRotation(cfg)
	}
	e.add("folders", cfg.Folders)
	list := []effectiveTarget{}
	for _, t := range cfg.Targets {
		list = append(list, newEffectiveTarget(cfg.Folders, t))
	}
	e.add("targets", list)
	return e
}

// addSettings adds the values that a struct has for the settings of a table, if they are
// not empty; of points to the struct.
func (e *Effective) addSettings(table []setting, of any) {
	for _, s := range table {
		if s.field == "" {
			continue
		}
		v := s.in(reflect.ValueOf(of))
		switch value := v.Interface().(type) {
		case secret.Value, Conjur, []RotatedSet:
		case time.Duration:
			if value != 0 || s.follows == "" {
				e.add(strings.TrimSuffix(s.name, "Seconds"), value.String())
			}
		case bool:
			e.addBoolean(s, value)
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

// addConjur adds the connection settings of Conjur: those that the authenticator uses.
func (e *Effective) addConjur(c *Conjur) {
	a, _ := authenticatorNamed(c.AuthnType)
	for _, s := range conjurSettings() {
		switch {
		case slices.Contains(credentialSettings(), s.name) && !slices.Contains(a.settings(), s.name), s.name == "conjur.sslCertificate":
		case s.name == "conjur.certFile":
			e.add("conjur.certificates", c.trusted())
		default:
			e.addSettings([]setting{s}, c)
		}
		if s.name == "conjur.authnUrl" && c.AuthnType != "" {
			e.add("conjur.authnType", c.AuthnType)
		}
	}
}

// trusted returns the source of the certificates that must sign Conjur's certificate:
// "text", a file's path, or "system".
func (c *Conjur) trusted() string {
	if c.SSLCertificate != "" {
		return "text"
	}
	return cmp.Or(c.CertFile, "system")
}

// effectiveSecret is a listed Secret, with its settings in the configuration.
type effectiveSecret struct {
	Namespace string           `json:"namespace,omitempty"`
	Name      string           `json:"name"`
	Create    bool             `json:"create,omitempty"`
	Type      string           `json:"type,omitempty"`
	Entries   []targets.Entry  `json:"entries,omitempty"`
	Groups    []effectiveGroup `json:"groups,omitempty"`
	Restart   []string         `json:"restart,omitempty"`
	PullFor   []string         `json:"pullSecretFor,omitempty"`
}

type effectiveGroup struct {
	Group             string          `json:"group"`
	Format            targets.Format  `json:"format"`
	DotenvReaders     []string        `json:"dotenvReaders,omitempty"`
	Template          string          `json:"template,omitempty"` // "inline"
	TemplateConfigMap string          `json:"templateConfigMap,omitempty"`
	Entries           []targets.Entry `json:"entries"`
}

// addSecrets adds the listed Secrets, or that none is listed.
func (e *Effective) addSecrets(cfg *Config) {
	if cfg.Destination == DestinationKubernetes && cfg.Kubernetes.ByLabel() {
		e.add("kubernetes.byLabel", true)
		return
	}
	var secrets []effectiveSecret
	for _, def := range cfg.Kubernetes.Definitions {
		of := effectiveSecret{Namespace: def.Namespace, Name: def.Name}
		if t := def.Configured; t != nil {
			of.Create, of.Type, of.Restart, of.PullFor, of.Entries = t.Secret.Create, t.Secret.Type, t.Secret.Restart, t.Secret.PullFor, t.Entries
			for _, g := range t.Secret.Groups {
				template, configMap := effectiveTemplate(Folders{}, g)
				of.Groups = append(of.Groups, effectiveGroup{g.Group, g.Format, g.DotenvReaders, template, configMap, append([]targets.Entry{}, g.Entries...)})
			}
		}
		secrets = append(secrets, of)
	}
	if secrets != nil {
		e.add("kubernetes.secrets", secrets)
	}
}

// effectiveSet is a rotated set.
type effectiveSet struct {
	Set     string   `json:"set"`
	Every   string   `json:"every,omitempty"`
	Cron    string   `json:"cron,omitempty"`
	Before  string   `json:"before,omitempty"`
	Keep    string   `json:"keep"`
	Wait    string   `json:"wait,omitempty"`
	Ask     []string `json:"ask,omitempty"`
	Restart []string `json:"restarted,omitempty"`
}

// addRotation adds the rotated sets, if there are any.
func (e *Effective) addRotation(cfg *Config) {
	if len(cfg.Rotation.Sets) == 0 {
		return
	}
	e.addSettings(section("rotation"), cfg)
	e.add("rotation.login", cfg.Rotation.Conjur.Login)
	var sets []effectiveSet
	for _, set := range cfg.Rotation.Sets {
		sets = append(sets, effectiveSet{
			set.Set, text(set.Every), set.Cron, text(set.Before), set.Keep.String(), text(set.Confirm.Wait), set.Confirm.Ask, set.Confirm.Restarted,
		})
	}
	e.add("rotation.sets", sets)
}

// text returns a duration as text, or "" for none.
func text(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// effectiveTarget is one target of an Effective.
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
	if t.Open() {
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
