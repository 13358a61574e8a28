package rotation

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Rotated is a set and its rotation settings.
type Rotated struct {
	ID       string // of the variable
	Generate generate.Config
	Schedule Schedule
	Policy   versions.Policy
	// Consumers reports the progress of the set's consumers; nil means no consumers.
	Consumers Consumers
	// Actuator makes an outside system accept versions; nil means that the versions are
	// keys. Sets with the same Outside share its failures.
	Actuator actuators.Actuator
	Outside  string
	// Timeout is the time limit of one act of Actuator, which enforces the limit itself.
	// The step gets this time in addition to Config.Timeout; 0 adds nothing.
	Timeout time.Duration
	Publish map[string]Published // by the variable's id
	Adopt   map[string]string    // the variable's id, by the part that it becomes
}

// The reasons of Events.
const (
	EventStarted    = "RotationStarted"
	EventWaiting    = "RotationWaiting"
	EventPromoted   = "RotationPromoted"
	EventDone       = "RotationDone"
	EventFailed     = "RotationFailed"
	EventRolledBack = "RotationRolledBack"
)

// The results of a rotation.
const (
	ResultPromoted   = "promoted"
	ResultRolledBack = "rolled_back"
	ResultDropped    = "dropped" // refused, given up or aborted
)

// Event is news about a set for an operator. It contains no byte of a part.
type Event struct {
	Set, Reason, Message string
	Warning              bool
	Result               string // of the rotation that ends with it; empty: no rotation ends
}

// Listener receives the events of sets.
type Listener interface {
	// Rotated is called with each Event. It must not block.
	Rotated(Event)
	// Failed is called with each step that failed and will be retried: "read", "publish",
	// or the verb of an action. It must not block.
	Failed(set, step string)
}

// rotated is a set and a Rotator's knowledge about it. All fields except the atomic ones
// belong to the goroutine that holds the set's key.
type rotated struct {
	Rotated
	set Set

	commanded atomic.Bool // an operator's command may have arrived
	unmended  atomic.Bool // a published value may have changed

	configured Rotated   // without the settings from policy
	annotated  time.Time // when the annotations were read
	unclear    string    // their faults

	held       Held               // during a step; cleared afterwards
	wrote      *versions.Document // during a step, too
	begun      bool               // the variable had a value at the last read
	control    control
	steered    bool      // the control variable has a value
	controlled time.Time // when it was last read
	seen       uint64
	verified   time.Time            // when the primary was last used successfully
	watched    map[string]time.Time // since when this process has seen a version without consumers
	doing      string               // the current step
	refusal    string               // why the outside refused in this step
	failures   int                  // in a row
	waited     string               // the last Event about a wait
	why        string               // why it waits
	hand       string               // who else changes the published values; "": nobody was seen
	ahead      string               // which version has a time in the future
	shown      []Shown              // what targets show of it, during a step; nil: unknown
	unread     []Shown              // targets that show it but can no longer be read
	blind      string               // the last Event that named them
	polled     atomic.Pointer[[]string]
	namespaces atomic.Pointer[[]string] // the noted namespaces; nil: unknown
	news       atomic.Bool              // other namespaces may show it
	report     atomic.Pointer[Report]
}

// forget clears the parts that were read or made in a step.
func (s *rotated) forget() {
	for _, doc := range []*versions.Document{s.held.Document, s.wrote} {
		if doc != nil {
			doc.Wipe()
		}
	}
	s.held, s.wrote, s.shown = Held{}, nil, nil
}

// noted records what the poll must check: all variables with a value, and the namespaces
// that the set notes.
func (s *rotated) noted() {
	ids := s.variables()
	s.polled.Store(&ids)
	if doc := s.doc(); doc.Namespaces != nil && doc.Owner == s.Policy.Owner {
		s.namespaces.Store(&doc.Namespaces)
	}
}

func (s *rotated) variables() (ids []string) {
	if s.begun {
		ids = append(ids, s.ID)
	}
	if s.steered {
		ids = append(ids, versions.ControlOf(s.ID))
	}
	for id := range s.Publish {
		if s.begun {
			ids = append(ids, id)
		}
	}
	return ids
}

// gates are the consumers' answers for one set.
type gates struct {
	introduced bool
	left       map[string]bool // false: known to be in use; absent: unknown
	waits      string          // what the first closed gate waits for
	until      time.Time       // by the local clock, when to ask again; zero: unknown
	unknown    error           // why not all could be asked; their gates are closed
}

// ask asks the consumers of a set for their progress.
func (s *rotated) ask(ctx context.Context, doc *versions.Document) gates {
	g := gates{left: map[string]bool{}}
	for _, v := range doc.Versions {
		v, _ := doc.Version(v.ID)
		switch v.State {
		case versions.Accepted:
			_, used := doc.Primary()
			g.introduced = s.Actuator != nil || !used || s.Consumers == nil || g.take(s.Consumers.Introduced(ctx, doc, v, s.shown))
		case versions.Retiring, versions.Revoking:
			left := Answer{Open: true}
			if s.Consumers != nil {
				left = s.Consumers.Left(ctx, doc, v, s.shown)
			}
			if left.Open {
				if left, g.unknown = s.unused(ctx, v); g.unknown != nil {
					return g
				}
			}
			if open := g.take(left); open || left.InUse {
				g.left[v.ID] = open
			}
		}
	}
	return g
}

// take reports whether a gate is open, and records what a closed gate waits for.
func (g *gates) take(a Answer) bool {
	if !a.Open && g.waits == "" {
		g.waits = a.Waits
	}
	if !a.Until.IsZero() && (g.until.IsZero() || a.Until.Before(g.until)) {
		g.until = a.Until
	}
	return a.Open
}

// unused answers whether nobody uses a version outside.
func (s *rotated) unused(ctx context.Context, v versions.Version) (Answer, error) {
	user, ok := s.Actuator.(actuators.User)
	if !ok {
		return Answer{Open: true}, nil
	}
	who, err := user.InUse(ctx, v)
	if err != nil {
		return Answer{}, fmt.Errorf("who uses %s is not known: %w", v.ID, err)
	}
	if len(who) == 0 {
		return Answer{Open: true}, nil
	}
	return Answer{Waits: fmt.Sprintf("%s is used by %s", v.ID, brief.List(who)), InUse: true}, nil
}
