package rotation

import (
	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

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

// emit passes an Event to the listener.
func (s *step) emit(e Event) {
	e.Set = s.ID
	level := zap.InfoLevel
	if e.Warning {
		level = zap.WarnLevel
	}
	s.r.config.Log.Log(level, e.Reason, zap.String("set", e.Set), zap.String("message", e.Message))
	if s.r.config.Listener != nil {
		s.r.config.Listener.Rotated(e)
	}
}

// emitOnce emits why a set waits, unless that was the last Event about a wait.
func (s *step) emitOnce(e Event) {
	if s.waitEvent != e.Message {
		s.waitEvent = e.Message
		s.emit(e)
	}
}

// emitChanges emits an Event for each version that a write made or moved.
func (s *step) emitChanges(before, after *versions.Document) {
	for _, v := range after.Versions {
		was, known := before.Version(v.ID)
		switch {
		case !known:
			s.emit(Event{Reason: EventStarted, Message: "made " + v.ID})
		case v.State == was.State:
		case v.State == versions.Primary && was.State == versions.Returning:
			s.emit(Event{Reason: EventRolledBack, Message: v.ID + " is the primary again", Result: ResultRolledBack})
		case v.State == versions.Primary:
			s.r.ledger.outcome(&s.Plan, true)
			s.emit(Event{Reason: EventPromoted, Message: v.ID + " is the primary", Result: ResultPromoted})
		case v.State == versions.Retiring && was.State != versions.Primary:
			s.r.ledger.outcome(&s.Plan, false)
			s.emit(Event{Reason: EventFailed, Message: s.withRefusal(after.Log[len(after.Log)-1].What), Warning: true, Result: ResultDropped})
		case v.State == versions.Retired:
			s.emit(Event{Reason: EventDone, Message: "retired " + v.ID})
		}
	}
}
