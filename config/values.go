package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// notYet is the warning for what has no effect.
const notYet = "not available in this version yet; without effect"

// value is what one source says for a setting. The zero value is not set.
type value struct {
	text string
	node *yaml.Node // instead of text, for a list in the configuration file
	key  string     // the source, for a Problem
	set  bool
	env  bool // from the environment
	bad  bool // set to something that is reported already
}

// values is what all sources say, the strongest source of each setting only.
type values struct {
	process map[string]value            // setting's name → value
	groups  map[string]map[string]value // group → setting's name → value

	// What only the configuration file can say. secrets is what stands there
	// for the setting nameK8sSecrets, nil when a stronger source has set it.
	secrets    *listField[fileSecret]
	identities listField[fileIdentity]

	table, groupTable []setting // settings() and groupSettings(), made once
}

func newValues() values {
	return values{
		process: map[string]value{}, groups: map[string]map[string]value{},
		table: settings(), groupTable: groupSettings(),
	}
}

// addAnnotations takes the annotations' values.
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
			r.warn(key, "not a setting; ignored%s", didYouMean(name))
			continue
		}
		a := annotations[key]
		val := value{text: a.value, key: key, set: true, bad: a.bad}
		if val.text == "" && !a.bad && s.emptyIsUnset() {
			continue
		}
		if !a.bad {
			err := s.check(val.text)
			switch {
			case err == nil:
			case s.lenient && s.outOfRange(val.text):
				r.warn(key, "%v; taken as the default (%s)", err, s.def)
				continue
			default:
				r.fail(key, "%v", err)
				val.bad = true
			}
		}
		if s.later {
			r.warn(key, notYet)
		}
		v.put(s.name, group, val)
	}
}

// addEnvironment takes the environment's values for what is not set yet. An
// empty variable is not set.
func (v *values) addEnvironment(getenv func(string) string, r *report) {
	for _, s := range v.table {
		if s.env == "" || v.process[s.name].set || getenv(s.env) == "" {
			continue
		}
		val := value{text: getenv(s.env), key: s.env, set: true, env: true}
		err := s.check(val.text)
		switch {
		case err == nil:
		case s.lenient:
			r.warn(s.env, "%v; taken as the default (%s)", err, s.def)
			continue
		default:
			r.fail(s.env, "%v", err)
			val.bad = true
		}
		if s.later {
			r.warn(s.env, notYet)
		}
		v.process[s.name] = val
	}
}

// put keeps a process setting, whose group is nil, or a group's.
func (v *values) put(name string, group *string, val value) {
	if group == nil {
		v.process[name] = val
		return
	}
	if v.groups[*group] == nil {
		v.groups[*group] = map[string]value{}
	}
	v.groups[*group][name] = val
}

// annotated finds the setting of an annotation, given without its domain, and the
// group that it is for, if it is one of a group.
func (v *values) annotated(name string) (s setting, group *string, ok bool) {
	for _, s := range v.table {
		if s.annotation == name && name != "" {
			return s, nil, true
		}
	}
	for _, s := range v.groupTable {
		if g, ok := strings.CutPrefix(name, s.annotation); ok {
			return s, &g, true
		}
	}
	return setting{}, nil, false
}

// find finds a setting by its name.
func find(table []setting, name string) (setting, bool) {
	for _, s := range table {
		if s.name == name {
			return s, true
		}
	}
	return setting{}, false
}

// text gives a process setting, def when it is not set, and the empty string
// when it is set badly.
func (v *values) text(name, def string) string {
	switch val := v.process[name]; {
	case val.bad:
		return ""
	case val.set:
		return val.text
	}
	return def
}

// boolean gives a process setting, def when it is not set or set badly.
func (v *values) boolean(name string, def bool) bool {
	if b, err := strconv.ParseBool(v.process[name].text); err == nil {
		return b
	}
	return def
}

// integer gives a process setting, def when it is not set or set badly.
func (v *values) integer(name string, def int) int {
	if n, err := strconv.Atoi(v.process[name].text); err == nil {
		return n
	}
	return def
}

// duration gives a process setting, def when it is not set or set badly.
func (v *values) duration(name string, def time.Duration) time.Duration {
	if d, err := time.ParseDuration(v.process[name].text); err == nil && !v.process[name].bad {
		return d
	}
	return def
}

// key is where a setting was set or, if it was not, is best set.
func (v *values) key(name string) string {
	if val := v.process[name]; val.set {
		return val.key
	}
	switch s, _ := find(v.table, name); {
	case s.annotation != "":
		return domain + s.annotation
	case s.env != "":
		return s.env
	}
	return name
}
