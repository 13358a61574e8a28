package versions

import (
	"fmt"
	"slices"
)

const (
	// maxNamespaces limits the namespaces that a set notes, so that they take at most a
	// tenth of its bytes.
	maxNamespaces = 100
	// anyNamespace stands for more namespaces than maxNamespaces.
	anyNamespace = "*"
)

// Shows reports whether the Secrets of a namespace may show the set, as far as noted. A
// set without notes may be shown anywhere.
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

// Note returns the set with these namespaces instead of the present ones. It is written
// together with another change. The names are sorted.
func (d *Document) Note(namespaces []string) *Document {
	if len(namespaces) > maxNamespaces {
		namespaces = []string{anyNamespace}
	}
	next := *d
	next.Namespaces = append([]string{}, namespaces...)
	return &next
}

// NoteAlone is Note as a separate write.
func (d *Document) NoteAlone(namespaces []string, by Entry) *Document {
	what := fmt.Sprintf("noted %d namespaces that show it", len(namespaces))
	return d.change(what, by, func(next *Document) { *next = *next.Note(namespaces) })
}
