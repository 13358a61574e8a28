package config

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// notASetting is the warning for an unknown name.
const notASetting = "not a setting; ignored"

// notYet is the warning for a setting without an effect.
const notYet = "not available in this version yet; without effect"

// value is one source's value of a setting. The zero value means not set.
type value struct {
	text string
	node *yaml.Node // instead of text, for a list in the configuration file
	key  string     // the source, for a Problem
	set  bool
	env  bool // from the environment
	bad  bool // already reported: the value, or that it is missing

	// The items of a list in the configuration file, or of a map, which has keys.
	items []item
	keys  []string
}

// values contains the settings of all sources; for each setting only the strongest
// source.
type values struct {
	process      item            // with the settings that only the configuration file may contain
	groups       map[string]item // by the group's name
	misspellings []misspelling
}

func newValues() values { return values{process: item{}, groups: map[string]item{}} }

// addAnnotations adds the values of the annotations.
func (v *values) addAnnotations(annotations map[string]annotation, r *report) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, ours := strings.CutPrefix(key, domain)
		if !ours {
			if strings.HasPrefix(strings.TrimSpace(key), domain) {
				r.warn(key, "not a setting; ignored; remove the space before it")
			}
			continue
		}
		s, group, ok := v.annotated(name)
		if !ok {
			if name == "inject-containers" || name == "inject-folder" || strings.HasPrefix(name, "inject-env.") {
				continue // for the chart's admission policy
			}
			if s, ok := misspellingOf(key, name); ok {
				v.misspellings = append(v.misspellings, s)
			} else {
				r.warn(key, notASetting)
			}
			continue
		}
		a := annotations[key]
		val := value{text: a.value, key: key, set: true, bad: a.bad}
		put := func() {
			if group == nil {
				s.oneLine(&val, r)
			}
			if (val.text != "" || a.bad || !s.emptyIsUnset()) && s.checkValue(&val, r) {
				v.put(s.name, group, val)
			}
		}
		if group == nil {
			put()
		} else {
			r.concerning(put, targets.FileKey(*group))
		}
	}
}

// oneLine removes line breaks from the end of a connection setting, such as those of a file
// that became a variable. It refuses other control characters. Certificates have lines.
func (s setting) oneLine(val *value, r *report) {
	if !strings.HasPrefix(s.name, "conjur.") || s.name == "conjur.sslCertificate" || val.bad {
		return
	}
	if text := strings.TrimRight(val.text, "\r\n"); text != val.text {
		val.text = text
		r.warn(val.key, "the value ends with a line break, which is removed; write it without one")
	}
	if strings.ContainsFunc(val.text, unicode.IsControl) {
		r.fail(val.key, "the value contains a line break or another control character; remove it")
		val.bad = true
	}
}

// checkValue checks the value of a setting, and reports whether it applies. A lenient
// setting keeps its default.
func (s setting) checkValue(val *value, r *report) bool {
	if err := s.checkText(val.text); err != nil && !val.bad {
		if s.lenient && (val.env || s.outOfRange(val.text)) {
			r.warn(val.key, "%v; using the default (%s)", err, cmp.Or(s.follows, s.def))
			return false
		}
		r.fail(val.key, "%v", err)
		val.bad = true
	}
	if s.later {
		r.warn(val.key, notYet)
	}
	return true
}

// addEnvironment adds the environment's values of settings that are not set yet. An empty
// variable is not set. If the configuration file names an API key file, addEnvironment
// ignores the API key.
func (v *values) addEnvironment(getenv func(string) string, r *report) {
	for _, s := range fileSettings() {
		if s.env == "" || v.process[s.name].set || getenv(s.env) == "" {
			continue
		}
		if file := v.process["conjur.apiKeyFile"]; s.name == "conjur.apiKey" && file.set {
			r.warn(s.env, "not used, because %s takes precedence", file.key)
			continue
		}
		val := value{text: getenv(s.env), key: s.env, set: true, env: true}
		if s.oneLine(&val, r); val.text != "" && s.checkValue(&val, r) {
			v.process[s.name] = val
		}
	}
}

// put stores a process setting, whose group is nil, or a group's setting.
func (v *values) put(name string, group *string, val value) {
	if group == nil {
		v.process[name] = val
		return
	}
	if v.groups[*group] == nil {
		v.groups[*group] = item{}
	}
	v.groups[*group][name] = val
}

// annotated finds the setting of an annotation, given without its domain. It also returns
// the group, if the setting belongs to a group.
func (v *values) annotated(name string) (s setting, group *string, ok bool) {
	for _, s := range fileSettings() {
		if s.annotation == name && name != "" {
			return s, nil, true
		}
	}
	for _, s := range groupSettings() {
		if g, ok := strings.CutPrefix(name, s.annotation); ok {
			return s, &g, true
		}
	}
	return setting{}, nil, false
}

// isTrue reports whether a Boolean is set, valid, and true.
func (v value) isTrue() bool {
	is, err := strconv.ParseBool(v.text)
	return err == nil && is
}

// texts returns the texts of a list in the configuration file, or a single text as a
// list.
func (v value) texts() []string {
	if v.set && !v.bad && v.node == nil {
		return []string{v.text}
	}
	return v.names()
}

// names returns the texts of a list in the configuration file.
func (v value) names() []string {
	if v.node == nil || v.bad {
		return nil
	}
	var names []string
	for _, n := range v.node.Content {
		names = append(names, definitions.Resolve(n).Value)
	}
	return names
}

// object returns the value of a setting of kindObject.
func (v value) object() item {
	if len(v.items) == 0 {
		return item{}
	}
	return v.items[0]
}

// fill sets the fields of a table's settings in a struct; into points to the struct. Each
// field gets its value in said, or otherwise the default. The caller sets lists, and
// defaults that depend on other settings.
func fill(table []setting, said item, into reflect.Value) {
	for _, s := range table {
		if s.field != "" {
			s.fill(said[s.name], s.in(into))
		}
	}
}

func (s setting) fill(val value, field reflect.Value) {
	text := s.def
	if val.set && !val.bad {
		text = val.text
	}
	switch p := field.Addr().Interface().(type) {
	case *bool:
		*p, _ = strconv.ParseBool(text)
		*p = *p || s.truth != "" && text == s.truth
	case *int:
		*p, _ = s.integer(text)
	case *time.Duration:
		*p, _ = s.duration(text)
	case *[]string:
		if s.kind == kindTexts {
			*p = val.texts()
		}
	case *secret.Value:
		*p = secret.New([]byte(text))
	default:
		switch {
		case s.kind == kindObject && field.Kind() == reflect.Struct:
			fill(s.items, val.object(), field.Addr())
		case s.kind == kindObject && val.set:
			field.Set(reflect.New(field.Type().Elem()))
			fill(s.items, val.object(), field)
		case field.Kind() == reflect.String && val.bad:
			field.SetString("")
		case field.Kind() == reflect.String:
			field.SetString(text)
		}
	}
}

// key is where a setting was set, or the best place to set it.
func (v *values) key(name string) string {
	if val := v.process[name]; val.set {
		return val.key
	}
	switch s, _ := find(fileSettings(), name); {
	case s.annotation != "":
		return domain + s.annotation
	case s.env != "":
		return s.env
	}
	return name
}
