package config

import (
	"slices"
	"strings"
)

// slipOf returns the setting that the annotation key probably means, or false if no
// setting is similar. name is the key without its domain.
func slipOf(key, name string) (slip, bool) {
	base, group, hasGroup := strings.Cut(name, ".")
	var known, groups []string
	for _, s := range fileSettings() {
		known = append(known, s.annotation) // "", if it has none, resembles no name
	}
	for _, s := range groupSettings() {
		groups = append(groups, strings.TrimSuffix(s.annotation, "."))
	}
	s := slip{key: key}
	best := nearest(name, known)
	if near := nearest(base, groups); best == "" && near != "" {
		best = near + ".{group}"
		if hasGroup {
			best, s.group = near+"."+group, &group
		}
	}
	s.message = notASetting + "; did you mean " + domain + best + "?"
	return s, best != ""
}

// nearest returns the name that differs from word in the fewest letters, if these are
// few. Among several it returns the first. Without one it returns the empty string.
func nearest(word string, names []string) string {
	best, least := "", 1+min(3, len(word)/4)
	for _, name := range names {
		if len(word)-len(name) >= least {
			continue
		}
		if d := distance(word, name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is the Levenshtein distance: letters to insert, delete or replace.
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

// suggestion names the known word that an unknown one probably means.
func suggestion(word string, known []string) string {
	if best := nearest(word, known); best != "" {
		return "; did you mean " + best + "?"
	}
	return ""
}
