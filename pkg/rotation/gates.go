package rotation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Answer is whether a gate is open. The zero Answer is shut.
type Answer struct {
	Open bool
	// Waits names what a shut gate waits for, and the safe way out if there is
	// one.
	Waits string
	// Until is when to ask again; zero: nothing says when.
	Until time.Time
	// InUse: a consumer is known not to be where it has to be. Without it, a gate
	// may be shut as that is not known.
	InUse bool
}

// Consumers says how far those are who use the versions of one set. It is asked
// again and again while a gate is shut, by one goroutine, and may remember what
// it has seen; what it remembers opens no gate for another version or step.
type Consumers interface {
	// Introduced answers for gate A: every consumer has v, from the step of
	// v or a later one.
	Introduced(ctx context.Context, doc *versions.Document, v versions.Version) Answer
	// Left answers for gate B, without keep or grace: every consumer uses the
	// primary of doc instead of v, from the step of v or a later one, and the
	// migration is done.
	Left(ctx context.Context, doc *versions.Document, v versions.Version) Answer
}

// Shown is what one target, a Kubernetes Secret, shows of a set.
type Shown struct {
	Namespace, Name string
	Step            uint64
	Primary         string    // the version's id
	Since           time.Time // when it was first seen to show this step, or to be unread, by this process
	// Unread is why the target can no longer be read or written; empty: it can.
	// Without a Name, that holds for all targets of the namespace, and of these it is
	// not known whether they show the set.
	Unread string
}

// Counts reports whether the target shows the set, as far as that is known or doc
// has noted it.
func (s Shown) Counts(doc *versions.Document) bool { return s.Name != "" || doc.Shows(s.Namespace) }

// String names the target, or its namespace.
func (s Shown) String() string {
	if s.Name == "" {
		return "namespace " + s.Namespace
	}
	return "secret/" + s.Name + " of namespace " + s.Namespace
}

// Targets says what targets show and have. An error says that not all of them are
// known.
type Targets interface {
	// Shown returns what the targets of a set show of it, and the namespaces of
	// which that is not known.
	Shown(set string) ([]Shown, error)
	// Since returns when the oldest target was made that has one of these
	// variables; zero: none has.
	Since(ctx context.Context, variables []string) (time.Time, error)
}

// Gate is what stands between two steps by hand.
type Gate struct {
	Consumers Consumers     // nil: nobody is asked
	Keep      time.Duration // least time since a version was the primary, to retire it
	// Force goes past what speaks against a step, for a Reason that the set's log
	// keeps.
	Force  bool
	Reason string
}

// introduced returns what speaks against making a version the primary.
func (g Gate) introduced(ctx context.Context, doc *versions.Document, v versions.Version) (against []string) {
	if g.Consumers == nil {
		return nil
	}
	if a := g.Consumers.Introduced(ctx, doc, v); !a.Open {
		against = append(against, a.Waits)
	}
	return against
}

// left returns what speaks against taking a version away.
func (g Gate) left(ctx context.Context, doc *versions.Document, v versions.Version, now time.Time) (against []string) {
	if since := now.Sub(v.Since); since < g.Keep && !v.Promoted.IsZero() { // else nothing was made with it
		against = append(against, fmt.Sprintf("%s have passed of %s", since.Round(time.Second), g.Keep))
	}
	if g.Consumers == nil {
		return against
	}
	if a := g.Consumers.Left(ctx, doc, v); !a.Open {
		against = append(against, a.Waits)
	}
	return against
}

// pass returns nil if nothing speaks against going on, or if a person says that
// it does not count and why.
func (g Gate) pass(against []string) error {
	switch {
	case len(g.Reason) > versions.MaxReason:
		return fmt.Errorf("the reason has %d bytes; at most %d are kept, so shorten it", len(g.Reason), versions.MaxReason)
	case len(against) == 0:
		return nil
	case g.Force && strings.TrimSpace(g.Reason) != "":
		return nil
	case g.Force:
		return errors.New("--force needs a --reason, which the set's log keeps")
	}
	return fmt.Errorf("%s (to go on all the same, add --force --reason …)", strings.Join(against, "; "))
}
