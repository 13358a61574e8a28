package rotation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Shown is the state of a set in one target, a Kubernetes Secret.
type Shown struct {
	Namespace, Name string
	Step            uint64
	Primary         string    // the version's id
	Since           time.Time // when this process first saw it show this step, or fail
	// Unread is why the target can no longer be read or written; empty if it can. An
	// Unread without a Name applies to all targets of the namespace. It is then unknown
	// whether they show the set.
	Unread string
}

// Counts reports whether the target shows the set, as far as known or noted in doc.
func (s Shown) Counts(doc *versions.Document) bool { return s.Name != "" || doc.Shows(s.Namespace) }

// String returns the name of the target, or of its namespace.
func (s Shown) String() string {
	if s.Name == "" {
		return "namespace " + s.Namespace
	}
	return "secret/" + s.Name + " of namespace " + s.Namespace
}

// Targets reports which sets and variables the targets show. An error means that not all
// targets are known.
type Targets interface {
	// Shown returns the state of a set in its targets, and the namespaces for which that
	// is unknown.
	Shown(ctx context.Context, set string) ([]Shown, error)
	// Since returns the creation time of the oldest target that holds one of these
	// variables; zero if none does.
	Since(ctx context.Context, variables []string) (time.Time, error)
}

// Unread is a target or namespace that shows a set but can no longer be read or written.
type Unread struct {
	Namespace string    `json:"namespace"`
	Since     time.Time `json:"since"` // when this process first found that
	Why       string    `json:"why"`
}

// listNamespaces returns the namespaces that show a set.
func listNamespaces(shown []Shown, doc *versions.Document) []string {
	namespaces := []string{}
	for _, target := range shown {
		if target.Counts(doc) {
			namespaces = append(namespaces, target.Namespace)
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// listUnread returns the targets of a set that can no longer be read.
func listUnread(shown []Shown, doc *versions.Document) []Shown {
	return slices.DeleteFunc(slices.Clone(shown), func(target Shown) bool { return target.Unread == "" || !target.Counts(doc) })
}

// reportUnread returns the targets that can no longer be read: for each namespace, the
// oldest problem.
func reportUnread(unread []Shown) (all []Unread) {
	for _, target := range unread {
		all = append(all, Unread{target.Namespace, target.Since, target.Unread})
	}
	slices.SortStableFunc(all, func(a, b Unread) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), a.Since.Compare(b.Since))
	})
	return slices.CompactFunc(all, func(a, b Unread) bool { return a.Namespace == b.Namespace })
}

// readShown returns what the targets show of a set; nil if no targets are known.
func readShown(ctx context.Context, targets Targets, set string) ([]Shown, error) {
	if targets == nil {
		return nil, nil
	}
	shown, err := targets.Shown(ctx, set)
	if err != nil {
		return nil, fmt.Errorf("cannot read which step its Secrets show: %w", err)
	}
	return append([]Shown{}, shown...), nil
}
