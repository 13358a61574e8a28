package config

import (
	"strings"

	"github.com/secretsync/syncer/internal/suggest"
)

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
