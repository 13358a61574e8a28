package versions

import (
	"fmt"
	"slices"
)

const (
	// maxNamespaces bounds how many namespaces a set notes, so that they take a
	// tenth of its bytes at most.
	maxNamespaces = 100
	// anyNamespace stands for more than that.
	anyNamespace = "*"
)

// Shows reports whether the Secrets of a namespace may show the set, as far as was
// noted. A set that nobody has noted that of may be shown anywhere.
func (d *Document) Shows(namespace string) bool {
	if d.Namespaces == nil {
		return len(d.Versions) > 0
	}
	return slices.Contains(d.Namespaces, namespace) || slices.Contains(d.Namespaces, anyNamespace)
}

// Noted reports whether the set notes all of these namespaces.
func (d *Document) Noted(namespaces []string) bool {
	return d.Namespaces != nil && !slices.ContainsFunc(namespaces, func(n string) bool { return !d.Shows(n) })
}

// Note returns the set with these namespaces instead of those that it has, to be
// written beside what else changes. The names are sorted.
func (d *Document) Note(namespaces []string) *Document {
	if len(namespaces) > maxNamespaces {
		namespaces = []string{anyNamespace}
	}
	next := *d
	next.Namespaces = append([]string{}, namespaces...)
	return &next
}

// NoteAlone is Note as a write of its own.
func (d *Document) NoteAlone(namespaces []string, by Entry) *Document {
	what := fmt.Sprintf("noted %d namespaces that show it", len(namespaces))
	return d.change(what, by, func(next *Document) { *next = *next.Note(namespaces) })
}
