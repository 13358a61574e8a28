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

// announcer passes the Events of a set to the log and to the listener.
type announcer struct {
	set      string
	log      *zap.Logger
	listener Listener // nil: none
	waiting  string   // the message of the last Event about a wait
}

func (a *announcer) emit(e Event) {
	e.Set = a.set
	level := zap.InfoLevel
	if e.Warning {
		level = zap.WarnLevel
	}
	a.log.Log(level, e.Reason, zap.String("set", e.Set), zap.String("message", e.Message))
	if a.listener != nil {
		a.listener.Rotated(e)
	}
}

// emitOnce emits why a set waits, unless that was the last Event about a wait.
func (a *announcer) emitOnce(e Event) {
	if a.waiting != e.Message {
		a.waiting = e.Message
		a.emit(e)
	}
}

// listChanges returns an Event for each version that a write made or moved. refusal is the
// reason that the outside gave; empty if none.
func listChanges(before, after *versions.Document, refusal string) (events []Event) {
	for _, v := range after.Versions {
		was, known := before.Version(v.ID)
		switch {
		case !known:
			events = append(events, Event{Reason: EventStarted, Message: "made " + v.ID})
		case v.State == was.State:
		case v.State == versions.Primary && was.State == versions.Returning:
			events = append(events, Event{Reason: EventRolledBack, Message: v.ID + " is the primary again", Result: ResultRolledBack})
		case v.State == versions.Primary:
			events = append(events, Event{Reason: EventPromoted, Message: v.ID + " is the primary", Result: ResultPromoted})
		case v.State == versions.Retiring && was.State != versions.Primary:
			events = append(events, Event{Reason: EventFailed, Message: addRefusal(after.Log[len(after.Log)-1].What, refusal), Warning: true, Result: ResultDropped})
		case v.State == versions.Retired:
			events = append(events, Event{Reason: EventDone, Message: "retired " + v.ID})
		}
	}
	return events
}

// addRefusal returns what happened, and the reason if the outside gave one.
func addRefusal(what, refusal string) string {
	if refusal == "" {
		return what
	}
	return what + ": " + refusal
}
