// Package brief names a few of many items, so that people read a message about thousands
// of them. It also shortens texts, durations and addresses.
package brief

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The number of named items.
const (
	Names   = 20 // of things that have a name
	Reasons = 5  // of sentences
)

// Some returns the first texts, without consecutive duplicates, and then the number of
// the others.
func Some[S ~string](texts []S, most int) []S {
	some := slices.Compact(slices.Clone(texts[:min(most, len(texts))]))
	if more := len(texts) - most; more > 0 {
		some = append(some, S(fmt.Sprintf("and %d more", more)))
	}
	return some
}

// List is Some of the names in one text, "a, b and 3 more".
func List[S ~string](names []S) string {
	var some []string
	for _, name := range Some(names, Names) {
		some = append(some, string(name))
	}
	if len(names) <= Names {
		return strings.Join(some, ", ")
	}
	last := len(some) - 1
	return strings.Join(some[:last], ", ") + " " + some[last]
}

// OneLine returns a text as one line of at most most bytes, and marks the omission.
func OneLine(text string, most int) string {
	return Truncate(strings.ReplaceAll(strings.TrimSpace(text), "\n", "; "), most)
}

// Truncate returns at most most bytes of a text, and marks the omission.
func Truncate(text string, most int) string {
	const omitted = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(omitted)], "") + omitted
}

// Input returns a part of an input for a message, because inputs may have any length.
func Input(text string) string { return Truncate(text, 200) }

// Count returns a number with its noun, such as "1 value" or "2 values".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Duration returns a duration as the configuration file accepts it: from two days on, with
// days, such as 30d or 27d13h7m0s.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch rest := d % day; {
	case d < 2*day:
		return d.String()
	case rest == 0:
		return fmt.Sprintf("%dd", d/day)
	default:
		return fmt.Sprintf("%dd%v", d/day, rest)
	}
}

// Address returns an address for a message: quoted and cut, or a description if the text
// may contain a login.
func Address(text string) string {
	if strings.Contains(text, "@") {
		return "the address, which is not shown because it may contain a password,"
	}
	return fmt.Sprintf("%.200q", text)
}

// ListError returns an error with a first line and up to Names other lines.
func ListError(what string, lines []string) error {
	return errors.New(strings.Join(append([]string{what}, Some(lines, Names)...), "\n"))
}
