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

// kind is what a setting's text must look like.
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

// setting is one thing that an operator may set. It is made of the tags of a
// field. The names, defaults and allowed values of annotations and variables are
// those of the Secrets Provider's annotation reference, unless the documentation,
// testdata/settings.yaml, says that they are new.
type setting struct {
	// name is the setting's path in the configuration file, or in an item of
	// one of its lists, and what the code calls it.
	name string
	// annotation is the key without its domain; with a dot at its end the
	// group's name follows. Empty: none.
	annotation string
	env        string // empty: none
	kind       kind   // by the field's type, unless a tag says it
	scope      Scope  // what a change touches; none of what has no effect, or has that of its list
	// field is the path of the field with the value that is in effect: the one
	// with the tags, or that of another struct which the tag in names. Empty, of a
	// field without a name: another setting, or the list that the setting is in,
	// shows what it changes.
	field    string
	section  string        // of the process's settings; see NewEffective
	noun     string        // what a value of kindChoice is
	allowed  []string      // kindChoice: all values
	truth    string        // that of two allowed values for which a Boolean field is true
	min, max int           // kindInteger: bounds; max 0 means none
	least    time.Duration // kindDuration, kindPeriod: the shortest
	def      string        // the tag default
	// follows says in words what the default is where that is not one text. Quotes
	// of the tag stand for the marks of code.
	follows string
	// items are the settings of an item of a list, of a map of maps, or of the one
	// map of kindObject, in the configuration file.
	items []setting
	tag   reflect.StructTag

	// What the tag is lists.

	short bool // a text stands for an item's first setting
	// lenient settings fall back to the default, with a warning, when the
	// environment holds something else than the kind allows, or when they are
	// numbers out of bounds, as the Secrets Provider does.
	lenient    bool
	required   bool // in an item of a list
	envOnly    bool // not in the configuration file
	credential bool // it says how Syncer proves who it is
	later      bool // known, checked, and without effect in this version
}

// fileSettings lists the settings of the process, and those that only the
// configuration file has, by the fields of Config. groupSettings are those of a
// secret group, and conjurSettings how Conjur is reached.
var (
	fileSettings   = sync.OnceValue(func() []setting { return settingsOf(reflect.TypeFor[Config]()) })
	groupSettings  = sync.OnceValue(func() []setting { return settingsOf(reflect.TypeFor[group]()) })
	conjurSettings = sync.OnceValue(func() []setting { return settingsOf(reflect.TypeFor[Conjur]()) })
)

// settingsOf lists the settings of a struct, and of the structs in it that are
// none themselves.
func settingsOf(t reflect.Type) (table []setting) {
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

// settingsWithin lists the settings of a struct that is a field. With the tag only
// they are those that have the tag that it names, which says the default, and
// nothing but the configuration file has them.
func settingsWithin(f reflect.StructField) (table []setting) {
	only := f.Tag.Get("only")
	for _, s := range settingsOf(f.Type) {
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

func newSetting(f reflect.StructField) setting {
	tags := tagsOf(f.Tag)
	is := strings.Fields(tags["is"])
	s := setting{
		name: tags["name"], annotation: tags["annotation"], env: tags["env"], kind: kindOf(f.Type, tags),
		scope: scopeNamed(tags["scope"]), section: tags["section"], tag: f.Tag,
		field: cmp.Or(tags["in"], strings.TrimPrefix(f.Name, "_")),
		noun:  tags["noun"], allowed: strings.Fields(tags["allowed"]), truth: tags["true"],
		def: tags["default"], follows: marked(tags["follows"]),
		short: slices.Contains(is, "short"), lenient: slices.Contains(is, "lenient"), required: slices.Contains(is, "required"),
		envOnly: slices.Contains(is, "envOnly"), credential: slices.Contains(is, "credential"), later: slices.Contains(is, "later"),
	}
	s.min, _ = strconv.Atoi(tags["min"])
	s.max, _ = strconv.Atoi(tags["max"])
	s.least, _ = time.ParseDuration(tags["least"])
	switch s.kind {
	case kindSecrets, kindItems, kindMap, kindObject:
		of := f.Type
		for of.Kind() != reflect.Struct {
			of = of.Elem()
		}
		without := tags["without"]
		s.items = slices.DeleteFunc(settingsOf(of), func(s setting) bool { return s.name == without })
	}
	return s
}

// tagsOf takes the tags of a field apart at once, which reflect does not.
func tagsOf(tag reflect.StructTag) map[string]string {
	tags := map[string]string{}
	for rest := string(tag); ; {
		name, quoted, _ := strings.Cut(rest, ":")
		text, err := strconv.QuotedPrefix(quoted)
		if err != nil {
			return tags
		}
		tags[strings.TrimSpace(name)], _ = strconv.Unquote(text)
		rest = quoted[len(text):]
	}
}

// marked returns words of a tag with the marks of code, which a tag cannot have.
func marked(words string) string { return strings.ReplaceAll(words, `"`, "`") }

// kindOf is the kind that a tag says, or that follows from the field's type.
func kindOf(t reflect.Type, tags map[string]string) kind {
	switch {
	case tags["kind"] != "":
		return kind(tags["kind"])
	case tags["allowed"] != "":
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

// in returns the setting's field of a struct that a pointer points to. Of what a
// nil pointer leaves out it is the zero value.
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

// section returns the settings of the process that are shown together.
func section(name string) []setting {
	return slices.DeleteFunc(slices.Clone(fileSettings()), func(s setting) bool { return s.section != name })
}

// CredentialVariables lists the environment variables that hold Syncer's own
// credentials, or where they are.
func CredentialVariables() (names []string) {
	for _, s := range fileSettings() {
		if s.credential {
			names = append(names, s.env)
		}
	}
	return names
}

// WithoutCredentials returns an environment without Syncer's own credentials, for
// a program that it runs.
func WithoutCredentials(environ []string) []string {
	own := CredentialVariables()
	return slices.DeleteFunc(slices.Clone(environ), func(assignment string) bool {
		name, _, _ := strings.Cut(assignment, "=")
		return slices.Contains(own, name)
	})
}
