package config

//go:generate go test -run "TestSchemaIsCurrent|TestReferenceIsCurrent" -update .

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/secretsync/syncer/pkg/secret"
)

// kind is the required form of a setting's text.
type kind string

const (
	kindText        kind = "text"
	kindBoolean     kind = "boolean"
	kindInteger     kind = "integer"
	kindPercent     kind = "percent"
	kindDuration    kind = "duration"
	kindPeriod      kind = "period" // a duration that may begin with days
	kindChoice      kind = "choice"
	kindNames       kind = "names"
	kindTexts       kind = "texts" // one, or a list
	kindAddress     kind = "address"
	kindSignal      kind = "signal"
	kindUser        kind = "user"
	kindCommand     kind = "command"
	kindPermissions kind = "permissions"
	kindEntries     kind = "entries"
	kindNodeSecrets kind = "nodeSecrets"
	kindConfigMap   kind = "configMap"
	kindObjectName  kind = "objectName"
	kindNamespace   kind = "namespace"
	kindLabel       kind = "label"
	kindSecrets     kind = "secrets"
	kindItems       kind = "items"
	kindMap         kind = "map"
	kindObject      kind = "object"
)

// setting is one option for the operator. It comes from the tags of a field. The names,
// defaults and allowed values of annotations and variables match the Secrets Provider's
// annotation reference. The documentation, testdata/settings.yaml, marks those that are
// new.
type setting struct {
	// name is the setting's path in the configuration file, or in an item of one of its
	// lists. The code also uses this name.
	name string
	// annotation is the key without its domain. After a dot at the end, the group's name
	// follows. It is empty if there is no annotation.
	annotation string
	env        string // empty: none
	kind       kind   // from the field's type, unless a tag says it
	scope      Scope  // scope of a change; none without an effect, or with the list's scope
	// field is the path of the field with the effective value. This is the field with the
	// tags, or the field of another struct that the tag `in` names. It is empty for a field
	// without a name. Then another setting, or the list around the setting, shows its
	// effect.
	field    string
	section  string        // of the process's settings; see NewEffective
	noun     string        // what a value of kindChoice is called
	allowed  []string      // kindChoice: all values
	truth    string        // the one of two allowed values that means true in a Boolean field
	min, max int           // kindInteger: bounds; max 0 means no maximum
	least    time.Duration // kindDuration, kindPeriod: the shortest
	def      string        // the text of the default
	// follows says in words which default applies, if it is not a fixed text. Double
	// quotes in the tag stand for Markdown backquotes.
	follows string
	// items are the settings of an item in the configuration file. The item is in a list
	// or in a map of maps, or it is the single map of kindObject.
	items []setting
	tag   reflect.StructTag

	// The tag `is` lists those of the following words that apply.

	short bool // a text stands for an item's first setting
	// lenient settings fall back to the default with a warning, as the Secrets Provider
	// does. This happens if the environment contains a text of the wrong kind, or a
	// number out of bounds.
	lenient    bool
	required   bool // in an item of a list
	envOnly    bool // not in the configuration file
	credential bool // it is part of Syncer's own credentials
	later      bool // known, checked, and without effect in this version
}

// fileSettings lists the settings of the process, including those that only the
// configuration file may contain, by the fields of Config. groupSettings are the settings
// of a secret group. conjurSettings are the connection settings of Conjur.
var (
	fileSettings   = sync.OnceValue(func() []setting { return settingsOf(reflect.TypeFor[Config]()) })
	groupSettings  = sync.OnceValue(func() []setting { return settingsOf(reflect.TypeFor[group]()) })
	conjurSettings = sync.OnceValue(func() []setting { return settingsOf(reflect.TypeFor[Conjur]()) })
)

// settingsOf lists the settings of a struct, and of its nested structs that are not
// settings themselves.
func settingsOf(t reflect.Type) []setting {
	table := make([]setting, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		if _, ok := f.Tag.Lookup("name"); ok {
			table = append(table, newSetting(f))
		} else if f.Type.Kind() == reflect.Struct {
			table = append(table, settingsWithin(f)...)
		}
	}
	return table
}

// settingsWithin lists the settings of a struct field. If the field has the tag `only`, the
// list contains just the settings with the tag that `only` names. That other tag describes
// their default. Only the configuration file may set them.
func settingsWithin(f reflect.StructField) []setting {
	only := f.Tag.Get("only")
	all := settingsOf(f.Type)
	table := all[:0]
	for _, s := range all {
		_, ok := s.tag.Lookup(only)
		if only != "" && !ok {
			continue
		}
		if only != "" {
			s.annotation, s.env, s.def, s.follows, s.credential = "", "", "", marked(s.tag.Get(only)), false
		}
		if s.field != "" && f.Name != "_" {
			s.field = f.Name + "." + s.field
		}
		s.section = cmp.Or(s.section, f.Tag.Get("section"))
		table = append(table, s)
	}
	return table
}

// newSetting makes the setting that the tags of a field declare.
func newSetting(f reflect.StructField) setting {
	tags := appendTags(make(tags, 0, 16), f.Tag)
	is := strings.Fields(tags.findText("is"))
	s := setting{
		name: tags.findText("name"), annotation: tags.findText("annotation"), env: tags.findText("env"), kind: kindOf(f.Type, tags),
		scope: scopeNamed(tags.findText("scope")), section: tags.findText("section"), tag: f.Tag,
		field: cmp.Or(tags.findText("in"), strings.TrimPrefix(f.Name, "_")),
		noun:  tags.findText("noun"), allowed: strings.Fields(tags.findText("allowed")), truth: tags.findText("true"),
		def: tags.findText("default"), follows: marked(tags.findText("follows")),
		short: slices.Contains(is, "short"), lenient: slices.Contains(is, "lenient"), required: slices.Contains(is, "required"),
		envOnly: slices.Contains(is, "envOnly"), credential: slices.Contains(is, "credential"), later: slices.Contains(is, "later"),
	}
	s.min, _ = strconv.Atoi(cmp.Or(tags.findText("min"), "0"))
	s.max, _ = strconv.Atoi(cmp.Or(tags.findText("max"), "0"))
	s.least, _ = time.ParseDuration(cmp.Or(tags.findText("least"), "0"))
	switch s.kind {
	case kindSecrets, kindItems, kindMap, kindObject:
		of := f.Type
		for of.Kind() != reflect.Struct {
			of = of.Elem()
		}
		without := tags.findText("without")
		s.items = slices.DeleteFunc(settingsOf(of), func(s setting) bool { return s.name == without })
	}
	return s
}

// tags are the names and texts of a field's tags. At a start, a map for each field would
// cost more than the search.
type tags [][2]string

// findText returns the text of a tag, or "" without it.
func (all tags) findText(name string) string {
	for _, tag := range all {
		if tag[0] == name {
			return tag[1]
		}
	}
	return ""
}

// appendTags parses all tags of a field at once, which reflect does not.
func appendTags(all tags, tag reflect.StructTag) tags {
	for rest := string(tag); ; {
		name, quoted, _ := strings.Cut(rest, ":")
		text, err := strconv.QuotedPrefix(quoted)
		if err != nil {
			return all
		}
		unquoted, _ := strconv.Unquote(text)
		all = append(all, [2]string{strings.TrimSpace(name), unquoted})
		rest = quoted[len(text):]
	}
}

// marked returns words of a tag with Markdown backquotes, which a tag cannot contain.
func marked(words string) string { return strings.ReplaceAll(words, `"`, "`") }

// kindOf returns the kind from a tag, or otherwise from the field's type.
func kindOf(t reflect.Type, tags tags) kind {
	switch {
	case tags.findText("kind") != "":
		return kind(tags.findText("kind"))
	case tags.findText("allowed") != "":
		return kindChoice
	case t == reflect.TypeFor[time.Duration]():
		return kindDuration
	case t == reflect.TypeFor[secret.Value]():
		return kindText
	case t == reflect.TypeFor[[]string]():
		return kindNames
	}
	switch t.Kind() {
	case reflect.Bool:
		return kindBoolean
	case reflect.Int:
		return kindInteger
	case reflect.Slice:
		return kindItems
	case reflect.Map:
		return kindMap
	case reflect.Pointer, reflect.Struct:
		return kindObject
	}
	return kindText
}

// in returns the setting's field of a struct; v points to the struct. If a pointer on the
// path is nil, it returns the zero value.
func (s setting) in(v reflect.Value) reflect.Value {
	for name := range strings.SplitSeq(s.field, ".") {
		if v.Kind() == reflect.Pointer && v.IsNil() {
			v = reflect.New(v.Type().Elem())
		}
		v = reflect.Indirect(v).FieldByName(name)
	}
	return v
}

// find finds a setting by its name.
func find(table []setting, name string) (setting, bool) {
	i := slices.IndexFunc(table, func(s setting) bool { return s.name == name })
	if i < 0 {
		return setting{}, false
	}
	return table[i], true
}

// section returns the settings of the process in one section.
func section(name string) []setting {
	return slices.DeleteFunc(slices.Clone(fileSettings()), func(s setting) bool { return s.section != name })
}

// CredentialVariables lists the environment variables that contain Syncer's own
// credentials or their locations.
func CredentialVariables() (names []string) {
	for _, s := range fileSettings() {
		if s.credential {
			names = append(names, s.env)
		}
	}
	return names
}

// WithoutCredentials returns an environment without Syncer's own credentials, for a
// program that Syncer runs.
func WithoutCredentials(environ []string) []string {
	own := CredentialVariables()
	return slices.DeleteFunc(slices.Clone(environ), func(assignment string) bool {
		name, _, _ := strings.Cut(assignment, "=")
		return slices.Contains(own, name)
	})
}
