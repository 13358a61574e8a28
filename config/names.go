package config

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/secretsync/syncer/internal/suggest"
	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// checkLabel returns the problem with the name of a namespace.
func checkLabel(name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("%.200q is not a name of at most %d lower-case letters, digits and -, with a letter or digit at both ends", name, validation.DNS1123LabelMaxLength)
	}
	return nil
}

func checkConfigMap(text string) error {
	_, err := definitions.ParseConfigMapRef(text, "group", "")
	return err
}

// names reads a list of names. It reports a list that is set but invalid or empty. A
// duplicate name counts once.
func (l *loader) names(name string, parse func(string) ([]string, error)) []string {
	val := l.process[name]
	if !val.set || val.bad {
		return nil
	}
	names, err := val.names(), error(nil)
	if val.node == nil {
		names, err = parse(val.text)
		if val.env || name == "kubernetes.namespaces" {
			l.warnOfSpaces(val)
		}
	}
	if err == nil && len(names) == 0 {
		err = errors.New("the list is empty; add a name or remove the setting")
	}
	if err != nil {
		l.fail(val.key, "%v", err)
	}
	return l.unique(val.key, names)
}

// warnOfSpaces warns of names that commaList joins.
func (l *loader) warnOfSpaces(val value) {
	for name := range strings.SplitSeq(val.text, ",") {
		if words := strings.Fields(name); len(words) > 1 {
			l.warn(val.key, "%.200q is read as the one name %.200q; put commas between names", strings.Join(words, " "), strings.Join(words, ""))
		}
	}
}

// unique keeps the first of each name and warns of the others.
func (l *loader) unique(key string, names []string) (kept []string) {
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			l.warn(key, "%q is written twice", name)
			continue
		}
		seen[name] = true
		kept = append(kept, name)
	}
	return kept
}

// checked drops and reports the names that check refuses.
func (l *loader) checked(key string, names []string, check func(string) error) (kept []string) {
	for _, name := range names {
		if err := check(name); err != nil {
			l.fail(key, "%v", err)
			continue
		}
		kept = append(kept, name)
	}
	return kept
}

// commaList reads the form of the environment; it ignores spaces.
func commaList(text string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.Join(strings.Fields(name), ""); name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// yamlList reads the form of the annotation, a YAML list of names.
func yamlList(text string) ([]string, error) {
	var nodes []yaml.Node
	if err := yaml.Unmarshal([]byte(text), &nodes); err != nil {
		return nil, errors.New("not a YAML list; write each name as \"- name\" on a separate line")
	}
	var names []string
	for _, n := range nodes {
		switch {
		case n.Kind != yaml.ScalarNode:
			return nil, fmt.Errorf("line %d: not a name", n.Line)
		case n.Tag != "!!null" && n.Value != "":
			names = append(names, n.Value)
		}
	}
	return names, nil
}

// misspellingOf returns the setting that the annotation key probably means, or false if no
// setting is similar. name is the key without its domain.
func misspellingOf(key, name string) (misspelling, bool) {
	base, group, hasGroup := strings.Cut(name, ".")
	var known, groups []string
	for _, s := range fileSettings() {
		known = append(known, s.annotation) // "", if it has none, resembles no name
	}
	for _, s := range groupSettings() {
		groups = append(groups, strings.TrimSuffix(s.annotation, "."))
	}
	s := misspelling{key: key}
	best := suggest.Nearest(name, known)
	if near := suggest.Nearest(base, groups); best == "" && near != "" {
		best = near + ".{group}"
		if hasGroup {
			best, s.group = near+"."+group, &group
		}
	}
	s.message = notASetting + "; did you mean " + domain + best + "?"
	return s, best != ""
}

// suggestion names the known word that an unknown one probably means.
func suggestion(word string, known []string) string {
	if best := suggest.Nearest(word, known); best != "" {
		return "; did you mean " + best + "?"
	}
	return ""
}
