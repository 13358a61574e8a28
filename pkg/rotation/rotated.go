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

// Rotated is a set and how it is rotated.
type Rotated struct {
	ID       string // of the variable
	Generate generate.Config
	Schedule Schedule
	Policy   versions.Policy
	// Consumers says how far those are who use the set; nil: nobody does.
	Consumers Consumers
	// Actuator has something outside accept versions; nil: they are keys. Sets
	// with one Outside share what goes wrong there.
	Actuator actuators.Actuator
	Outside  string
	// Timeout is how long one act of Actuator may take, which bounds it itself. The
	// step gets that time beside Config.Timeout; 0: no more.
	Timeout time.Duration
	Publish map[string]Published // by the variable's id
	Adopt   map[string]string    // the variable's id by the part that it becomes
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

// What a rotation ends with.
const (
	ResultPromoted   = "promoted"
	ResultRolledBack = "rolled_back"
	ResultDropped    = "dropped" // refused, given up or aborted
)

// Event is what a person may want to know of a set. It has no byte of a part.
type Event struct {
	Set, Reason, Message string
	Warning              bool
	Result               string // of the rotation that ends with it; empty: none does
}

// Listener hears of what happens to sets.
type Listener interface {
	// Rotated is called with each Event. It must not block.
	Rotated(Event)
	// Failed is called with each step that failed and is tried again: "read",
	// "publish", or the verb of an action. It must not block.
	Failed(set, step string)
}

// rotated is a set and what a Rotator knows of it. All but what is atomic
// belongs to whoever has its key.
type rotated struct {
	Rotated
	set Set

	commanded atomic.Bool // somebody may have changed what a person wants
	unmended  atomic.Bool // or what is published

	configured Rotated   // without what the policy fills in
	annotated  time.Time // when the annotations were read
	unclear    string    // what is wrong with them

	held       Held               // in a step; nothing of it stays afterwards
	wrote      *versions.Document // in a step too
	begun      bool               // the variable had a value when it was last read
	control    control
	steered    bool      // the control variable has a value
	controlled time.Time // when it was last asked for
	seen       uint64
	verified   time.Time            // when the primary was last used with success
	watched    map[string]time.Time // since when this process has seen a version without consumers
	doing      string               // the step that is being taken
	refusal    string               // why the outside refused something in this step
	failures   int                  // in a row
	waited     string               // the last Event that said what it waits for
	why        string               // what it waits for
	hand       string               // who else changes what is published; "" if nobody was seen to
	ahead      string               // which version is from a time that is still to come
	showing    []string             // the namespaces that show it, in a step; nil: not known
	unread     []Shown              // targets that show it and can no longer be read
	blind      string               // the last Event that named them
	polled     atomic.Pointer[[]string]
	namespaces atomic.Pointer[[]string] // that it notes; nil: not known
	news       atomic.Bool              // others may show it
	report     atomic.Pointer[Report]
}

// forget clears the parts that were read or made in a step.
func (s *rotated) forget() {
	for _, doc := range []*versions.Document{s.held.Document, s.wrote} {
		if doc != nil {
			doc.Wipe()
		}
	}
	s.held, s.wrote, s.showing = Held{}, nil, nil
}

// noted takes down what the poll is to look at: all that has a value, and the
// namespaces that the set notes.
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
		ids = append(ids, ControlOf(s.ID))
	}
	for id := range s.Publish {
		if s.begun {
			ids = append(ids, id)
		}
	}
	return ids
}

// gates are the answers of the consumers of one set.
type gates struct {
	introduced bool
	left       map[string]bool // false: known not to; absent: not known
	waits      string          // what the first shut gate waits for
	until      time.Time       // by our clock, when to ask again; zero: nothing says when
	unknown    error           // why not all could be asked; their gates are shut
}

// ask asks the consumers of a set how far they are.
func (s *rotated) ask(ctx context.Context, doc *versions.Document) gates {
	g := gates{left: map[string]bool{}}
	for _, v := range doc.Versions {
		v, _ := doc.Version(v.ID)
		switch v.State {
		case versions.Accepted:
			_, used := doc.Primary()
			g.introduced = s.Actuator != nil || !used || s.Consumers == nil || g.take(s.Consumers.Introduced(ctx, doc, v))
		case versions.Retiring, versions.Revoking:
			left := Answer{Open: true}
			if s.Consumers != nil {
				left = s.Consumers.Left(ctx, doc, v)
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

// take reports whether a gate is open, and takes down what a shut one waits for.
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
