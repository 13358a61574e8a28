package rotation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Gate is the condition between two steps that an operator takes.
type Gate struct {
	Consumers Consumers     // nil: no check
	Keep      time.Duration // minimum time since a version became primary, before it is retired
	// Force overrides the objections to a step. The set's log keeps the Reason.
	Force  bool
	Reason string
}

// introduced returns the objections to making a version the primary.
func (g Gate) introduced(ctx context.Context, doc *versions.Document, v versions.Version) (against []string) {
	if g.Consumers == nil {
		return nil
	}
	if a := g.Consumers.Introduced(ctx, doc, v, nil); !a.Open {
		against = append(against, a.Waits)
	}
	return against
}

// left returns the objections to removing a version.
func (g Gate) left(ctx context.Context, doc *versions.Document, v versions.Version, now time.Time) (against []string) {
	if since := now.Sub(v.Since); since < g.Keep && !v.Promoted.IsZero() { // it made nothing
		against = append(against, fmt.Sprintf("%s have passed of %s", brief.Duration(since.Round(time.Second)), brief.Duration(g.Keep)))
	}
	if g.Consumers == nil {
		return against
	}
	if a := g.Consumers.Left(ctx, doc, v, nil); !a.Open {
		against = append(against, a.Waits)
	}
	return against
}

// pass returns nil if there are no objections, or if an operator overrides them with a
// reason.
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

// gates are the consumers' answers for one set.
type gates struct {
	introduced bool
	left       map[string]bool // false: known to be in use; absent: unknown
	waits      string          // what the first closed gate waits for
	until      time.Time       // by the local clock, when to ask again; zero: unknown
	unknown    error           // why not all could be asked; their gates are closed
}

// askConsumers asks the consumers of a set for their progress.
func (s *step) askConsumers(ctx context.Context) gates {
	doc := s.doc()
	g := gates{left: map[string]bool{}}
	for _, v := range doc.Versions {
		v, _ := doc.Version(v.ID)
		switch v.State {
		case versions.Accepted:
			_, used := doc.Primary()
			g.introduced = s.Actuator != nil || !used || s.Consumers == nil || g.recordAnswer(s.Consumers.Introduced(ctx, doc, v, s.shown))
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

// unused answers whether nobody uses a version outside.
func (s *step) unused(ctx context.Context, v versions.Version) (Answer, error) {
	user, ok := s.Actuator.(actuators.User)
	if !ok {
		return Answer{Open: true}, nil
	}
	who, err := user.InUse(ctx, v)
	if err != nil {
		return Answer{}, fmt.Errorf("cannot determine who uses %s: %w", v.ID, err)
	}
	if len(who) == 0 {
		return Answer{Open: true}, nil
	}
	return Answer{Waits: fmt.Sprintf("%s is used by %s", v.ID, brief.List(who)), InUse: true}, nil
}

// Unread is a target or namespace that shows a set but can no longer be read or written.
type Unread struct {
	Namespace string    `json:"namespace"`
	Since     time.Time `json:"since"` // when this process first found that
	Why       string    `json:"why"`
}

// shown returns what the targets show of a set; nil if no targets are known.
func (r *Rotator) shown(ctx context.Context, set string) ([]Shown, error) {
	if r.config.Targets == nil {
		return nil, nil
	}
	shown, err := r.config.Targets.Shown(ctx, set)
	if err != nil {
		return nil, fmt.Errorf("cannot read which step its Secrets show: %w", err)
	}
	return append([]Shown{}, shown...), nil
}

// showing returns the namespaces that show the set; nil means unknown.
func (s *step) showing() (namespaces []string) {
	if s.shown == nil {
		return nil
	}
	namespaces = []string{}
	for _, target := range s.shown {
		if target.Counts(s.doc()) {
			namespaces = append(namespaces, target.Namespace)
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// nameUnread records which targets can no longer be read. One Event names them.
func (s *step) nameUnread() {
	s.unread = nil
	var names []string
	for _, target := range s.shown {
		if target.Unread != "" && target.Counts(s.doc()) {
			s.unread = append(s.unread, target)
			names = append(names, fmt.Sprintf("%s: %s", target, target.Unread))
		}
	}
	if is := brief.List(names); is != s.unreadEvent && !s.r.config.Paused {
		if s.unreadEvent = is; is != "" {
			s.emit(Event{Reason: EventWaiting, Warning: true, Message: "Syncer cannot follow what shows the set: " + is + "; a new version waits a while for it, and no version is retired before"})
		}
	}
}

// unnoted reports whether the set, if this process may change it, lacks a namespace that
// shows it. A later process that cannot read the namespace must know about it.
func (s *step) unnoted() bool {
	showing := s.showing()
	return s.held.Document != nil && showing != nil && s.mine() && !s.doc().Paused && !s.doc().Noted(showing)
}

// Delivered schedules an early check of a set if a namespace shows the set but the set
// does not note the namespace.
func (r *Rotator) Delivered(set, namespace string) {
	s := r.sets[set]
	if s == nil {
		return
	}
	if noted := s.namespaces.Load(); noted == nil || !(&versions.Document{Namespaces: *noted}).Shows(namespace) {
		s.moved.Store(true)
	}
}

// reportUnread returns the targets that can no longer be read: for each namespace, the
// oldest problem.
func (s *step) reportUnread() (all []Unread) {
	for _, target := range s.unread {
		i := slices.IndexFunc(all, func(u Unread) bool { return u.Namespace == target.Namespace })
		switch {
		case i < 0:
			all = append(all, Unread{target.Namespace, target.Since, target.Unread})
		case target.Since.Before(all[i].Since):
			all[i].Since, all[i].Why = target.Since, target.Unread
		}
	}
	slices.SortFunc(all, func(a, b Unread) int { return strings.Compare(a.Namespace, b.Namespace) })
	return all
}
