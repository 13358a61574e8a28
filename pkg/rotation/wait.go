package rotation

import (
	"cmp"
	"errors"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

const (
	// shortest and longest limit the time between two checks of a closed gate. The time
	// is a tenth of how long the gate has been closed.
	shortest = time.Second
	longest  = 30 * time.Second
	// verifiedFor is how long a login counts as good after its use, while its set is
	// idle.
	verifiedFor = time.Hour
)

// hold returns the outcome for a set that must wait, if err says so. Any other err is an
// error of the step.
func (s *step) hold(err error) (outcome, error) {
	var hold *holdError
	if !errors.As(err, &hold) {
		return outcome{}, err
	}
	if hold.foreign {
		s.foreign = hold.why
	}
	return s.wait(versions.Action{Verb: versions.Wait, Why: hold.why, Until: hold.until})
}

// wait handles a set that waits. It emits the reason of the wait as an Event, and returns
// the time of the next check.
func (s *step) wait(action versions.Action) (outcome, error) {
	why := cmp.Or(s.foreign, s.gates.waits, s.withRefusal(action.Why))
	stage := s.doc().Stage()
	switch {
	case !s.mine() || s.foreign != "":
		s.emitOnce(Event{Reason: EventWaiting, Message: why, Warning: true})
	case stage != "idle":
		s.emitOnce(Event{Reason: EventWaiting, Message: stage + ": " + why})
	}
	active := s.mine() && !s.doc().Paused && !s.r.config.Paused
	if s.waitsFor = why; stage == "idle" && active && action.Verb == versions.Idle && s.foreign == "" {
		s.waitsFor, s.waitEvent = "", "" // a repetition counts as news
	}
	switch {
	case stage == "idle":
		return outcome{waits: true, again: s.idleFor(active)}, nil
	case !active:
		return outcome{waits: true, again: -1}, nil
	}
	return outcome{waits: true, again: s.closedFor(action)}, nil
}

// idleFor returns the time until an idle set is checked again; negative: after a change.
func (s *step) idleFor(active bool) time.Duration {
	again := time.Duration(-1)
	if due := s.Schedule.next(s.ID, s.doc()); !due.IsZero() && active {
		again = max(due.Sub(s.now), shortest)
	}
	if s.Actuator != nil {
		again = sooner(again, verifiedFor)
	}
	if s.asksPolicy() {
		again = sooner(again, s.annotatedAgain())
	}
	if s.foreign != "" || len(s.unread) > 0 {
		again = sooner(again, longest)
	}
	return again
}

// closedFor returns the time until a closed gate is checked again.
func (s *step) closedFor(action versions.Action) time.Duration {
	again := min(max(s.now.Sub(latest(s.doc()))/10, shortest), longest)
	if !action.Until.IsZero() { // by Conjur's clock
		again = min(again, max(action.Until.Sub(s.now), 0)+time.Millisecond)
	}
	if !s.gates.until.IsZero() { // by the local clock
		again = min(again, max(time.Until(s.gates.until), 0)+time.Millisecond)
	}
	return again
}

func sooner(a, b time.Duration) time.Duration {
	if a < 0 {
		return b
	}
	return min(a, b)
}

// latest returns when the set changed last.
func latest(doc *versions.Document) (at time.Time) {
	for _, v := range doc.Versions {
		if v.Since.After(at) {
			at = v.Since
		}
	}
	return at
}
