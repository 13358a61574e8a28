package config

import (
	"slices"
	"strings"
)

// didYouMean names the annotation that an unknown one, given without its
// domain, was probably meant to be; the empty string when none is near.
func didYouMean(name string) string {
	var known []string
	for _, s := range settings() {
		if s.annotation != "" {
			known = append(known, s.annotation)
		}
	}
	if best := nearest(name, known); best != "" {
		return "; did you mean " + domain + best + "?"
	}
	base, group, hasGroup := strings.Cut(name, ".")
	if !hasGroup {
		group = "{group}"
	}
	known = nil
	for _, s := range groupSettings() {
		known = append(known, strings.TrimSuffix(s.annotation, "."))
	}
	if best := nearest(base, known); best != "" {
		return "; did you mean " + domain + best + "." + group + "?"
	}
	return ""
}

// nearest gives the name that word differs from in the fewest letters, if
// they are few; the first of several.
func nearest(word string, names []string) string {
	best, least := "", 1+min(3, len(word)/4)
	for _, name := range names {
		if d := distance(word, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is Levenshtein's: letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		previous := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(previous[j+1]+1, row[j]+1, previous[j]+cost)
		}
	}
	return row[len(b)]
}

// fileSetting finds a setting of the configuration file.
func fileSetting(table []setting, name string) (setting, bool) {
	for _, s := range table {
		if s.name == name && !s.envOnly {
			return s, true
		}
	}
	return setting{}, false
}

// isObject tells whether settings of the configuration file are below path.
func isObject(path string) bool {
	return slices.ContainsFunc(settings(), func(s setting) bool {
		return !s.envOnly && strings.HasPrefix(s.name, path+".")
	})
}

// suggestField names the setting of the configuration file that an unknown
// path was probably meant to be.
func suggestField(path string) string {
	known := []string{fieldTargets}
	for _, s := range settings() {
		if s.envOnly {
			continue
		}
		known = append(known, s.name)
		if object, _, ok := strings.Cut(s.name, "."); ok {
			known = append(known, object)
		}
	}
	return suggestion(path, known)
}

func suggestTargetField(name string) string {
	known := []string{fieldName}
	for _, s := range groupSettings() {
		known = append(known, s.name)
	}
	return suggestion(name, known)
}

func suggestion(word string, known []string) string {
	if best := nearest(word, known); best != "" {
		return "; did you mean " + best + "?"
	}
	return ""
}
