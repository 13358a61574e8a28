// Package brief names some of many, so that a message about thousands of things
// is one that people read.
package brief

import (
	"fmt"
	"slices"
	"strings"
)

// How many are named.
const (
	Names   = 20 // of things that have a name
	Reasons = 5  // of sentences
)

// Some returns the first of the texts, without one that only repeats the one
// before, and after them how many more there are.
func Some(texts []string, most int) []string {
	some := slices.Compact(slices.Clone(texts[:min(most, len(texts))]))
	if more := len(texts) - most; more > 0 {
		some = append(some, fmt.Sprintf("and %d more", more))
	}
	return some
}

// List is Some of the names in one text, "a, b and 3 more".
func List(names []string) string {
	some := Some(names, Names)
	if len(names) <= Names {
		return strings.Join(some, ", ")
	}
	last := len(some) - 1
	return strings.Join(some[:last], ", ") + " " + some[last]
}

// Cut returns a text in one line of at most that many bytes, and marks what it cut off.
func Cut(text string, most int) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
