package rotation

import (
	"sync/atomic"
	"time"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Plan is a set and its rotation settings.
type Plan struct {
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
	Publish map[string]render.Published // by the variable's id
	Adopt   map[string]string           // the variable's id, by the part that it becomes
}

// rotated is a set with its plan and its status.
type rotated struct {
	Plan            // in effect: with the settings from policy
	configured Plan // without them
	set        Set
	signals
	status
}

// signals are what other goroutines report about a set, or read.
type signals struct {
	commanded  atomic.Bool              // an operator's command may have arrived
	unmended   atomic.Bool              // a published value may have changed
	moved      atomic.Bool              // other namespaces may show it
	polled     atomic.Pointer[[]string] // the variables that the poll checks
	namespaces atomic.Pointer[[]string] // the noted namespaces; nil: unknown
	report     atomic.Pointer[Report]
}

// status is the knowledge about a set between two steps. It belongs to the goroutine that
// holds the set's key.
type status struct {
	begun       bool   // the variable had a value at the last read
	seen        uint64 // the highest step
	control     control
	hasControl  bool                 // the control variable has a value
	controlRead time.Time            // when it was last read
	annotated   time.Time            // when the annotations were read
	unclear     string               // their faults
	verified    time.Time            // when the primary was last used successfully
	watched     map[string]time.Time // since when this process has seen a version without consumers
	unread      []Shown              // targets that show it but can no longer be read
	ahead       string               // which version has a time in the future
	waitsFor    string               // why it waits; empty: it does not
	waitEvent   string               // the last Event about a wait
	unreadEvent string               // the last Event that named the targets in unread
	failures    int                  // in a row
	err         error                // of the last step
}

func newRotated(plan Plan, client Conjur, server *server, seen uint64) *rotated {
	s := &rotated{Plan: plan, configured: plan, set: Set{Conjur: client, ID: plan.ID, server: server}, status: status{watched: map[string]time.Time{}, seen: seen}}
	s.commanded.Store(true)
	s.unmended.Store(true)
	s.polled.Store(&[]string{})
	return s
}

// variables returns those with a value, which the poll must check.
func (s *rotated) variables() []string {
	ids := []string{}
	if s.begun {
		ids = append(ids, s.ID)
	}
	if s.hasControl {
		ids = append(ids, versions.ControlOf(s.ID))
	}
	for id := range s.Publish {
		if s.begun {
			ids = append(ids, id)
		}
	}
	return ids
}
