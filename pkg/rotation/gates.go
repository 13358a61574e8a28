package rotation

import (
	"context"
	"fmt"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Answer says whether a gate is open. The zero Answer is closed.
type Answer struct {
	Open bool
	// Waits names the event that a closed gate waits for, and a safe way out if one
	// exists.
	Waits string
	// Until is when to ask again; zero means unknown.
	Until time.Time
	// InUse means that a consumer is known to be behind. If false, a gate may be closed
	// only because that is unknown.
	InUse bool
}

// Consumers reports the progress of the consumers of one set. One goroutine asks
// repeatedly while a gate is closed. Consumers may remember observations, but these open
// no gate for another version or step.
type Consumers interface {
	// Introduced answers for gate A: every consumer has v, from v's step or a later one.
	// shown is what the targets of the set show.
	Introduced(ctx context.Context, doc *versions.Document, v versions.Version, shown []Shown) Answer
	// Left answers for gate B, without keep or grace. Every consumer must use the primary
	// of doc instead of v, from v's step or a later one. The migration must be complete.
	Left(ctx context.Context, doc *versions.Document, v versions.Version, shown []Shown) Answer
}

// gates are the consumers' answers for one set.
type gates struct {
	introduced bool
	left       map[string]bool // false: known to be in use; absent: unknown
	waits      string          // what the first closed gate waits for
	until      time.Time       // by the local clock, when to ask again; zero: unknown
	unknown    error           // why not all could be asked; their gates are closed
}

// askConsumers asks the consumers of a set for their progress. shown is what its targets
// show.
func (p *Plan) askConsumers(ctx context.Context, doc *versions.Document, shown []Shown) gates {
	g := gates{left: map[string]bool{}}
	for _, v := range doc.Versions {
		v, _ := doc.Version(v.ID) // with its set
		switch v.State {
		case versions.Accepted:
			// Gate A is open where the outside accepts the version already, nobody uses the
			// set, or no consumers are known.
			_, used := doc.Primary()
			g.introduced = p.Actuator != nil || !used || p.Consumers == nil || g.recordAnswer(p.Consumers.Introduced(ctx, doc, v, shown))
		case versions.Retiring, versions.Revoking:
			left := Answer{Open: true}
			if p.Consumers != nil {
				left = p.Consumers.Left(ctx, doc, v, shown)
			}
			if left.Open {
				if left, g.unknown = p.askOutside(ctx, v); g.unknown != nil {
					return g
				}
			}
			if open := g.recordAnswer(left); open || left.InUse {
				g.left[v.ID] = open
			}
		}
	}
	return g
}

// recordAnswer reports whether a gate is open, and records what a closed gate waits for.
func (g *gates) recordAnswer(a Answer) bool {
	if !a.Open && g.waits == "" {
		g.waits = a.Waits
	}
	if !a.Until.IsZero() && (g.until.IsZero() || a.Until.Before(g.until)) {
		g.until = a.Until
	}
	return a.Open
}

// askOutside answers whether nobody uses a version outside.
func (p *Plan) askOutside(ctx context.Context, v versions.Version) (Answer, error) {
	user, ok := p.Actuator.(actuators.User)
	if !ok {
		return Answer{Open: true}, nil
	}
	who, err := user.InUse(ctx, v)
	switch {
	case err != nil:
		return Answer{}, fmt.Errorf("cannot determine who uses %s: %w", v.ID, err)
	case len(who) == 0:
		return Answer{Open: true}, nil
	}
	return Answer{Waits: fmt.Sprintf("%s is used by %s", v.ID, brief.List(who)), InUse: true}, nil
}

// listUnasked returns the Pods that use a set but are not asked.
func (p *Plan) listUnasked(ctx context.Context, shown []Shown) []string {
	if consumers, ok := p.Consumers.(interface {
		Unasked(context.Context, []Shown) []string
	}); ok {
		return consumers.Unasked(ctx, shown)
	}
	return nil
}

// holdError says why the set must wait although an action is due.
type holdError struct {
	why   string
	until time.Time
	// foreign means that a variable which the set publishes or adopts does not belong to
	// it. Somebody else changes the variable, or controls rotation with it.
	foreign bool
}

func (e *holdError) Error() string { return e.why }
