package injection

import (
	"fmt"
	"maps"
	"slices"
)

// unknown lists the values, below a path, that the chart does not have or that must be
// maps. Helm finds them by the chart's schema. The configuration and the resources of
// containers are not looked at.
func unknown(path string, values, defaults map[string]any) (problems []error) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		at := path + key
		standard, known := defaults[key]
		to, isMap := standard.(map[string]any)
		from, both := values[key].(map[string]any)
		switch {
		case !known && at != "global" && at != "enabled":
			problems = append(problems, fmt.Errorf("%s: the chart has no such value", at))
		case isMap && !both && values[key] != nil:
			problems = append(problems, fmt.Errorf("%s: must be a map", at))
		case slices.Contains([]string{"credentials", "credentials.apiKey", "credentials.certificate", "credentials.token", "image", "inject", "sidecar"}, at):
			problems = append(problems, unknown(at+".", from, to)...)
		}
	}
	return problems
}

// invalid lists the values that choose nothing the chart knows.
func invalid(values map[string]any) (problems []error) {
	for _, c := range []struct{ key, one, other string }{{"mode", "sidecar", "init"}, {"startup", "probe", "hook"}} {
		if v := section(values, "sidecar")[c.key]; v != c.one && v != c.other {
			problems = append(problems, fmt.Errorf("sidecar.%s: %q is not valid; use %s or %s", c.key, fmt.Sprint(v), c.one, c.other))
		}
	}
	if label, _ := section(values, "inject")["label"].(string); label == "" {
		problems = append(problems, fmt.Errorf("inject.label: must be the key of a label"))
	}
	return problems
}

// section returns a map in the values. If the user replaced it by something else, it
// returns an empty map.
func section(values map[string]any, name string) map[string]any {
	m, ok := values[name].(map[string]any)
	if !ok {
		m = map[string]any{}
		values[name] = m
	}
	return m
}

// merge puts values over the defaults, as Helm does: null removes a default.
func merge(into, values map[string]any) {
	for key, value := range values {
		to, from := into[key], value
		a, isMap := to.(map[string]any)
		b, both := from.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && both:
			merge(a, b)
		default:
			into[key] = value
		}
	}
}
