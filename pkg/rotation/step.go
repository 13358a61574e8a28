package rotation

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// step is one step of a set, with the knowledge that lasts for the step.
type step struct {
	*rotated
	r   *Rotator
	now time.Time // by Conjur's clock

	held    Held               // as it was read
	wrote   *versions.Document // nil: nothing was written
	shown   []Shown            // what the targets show of it; nil: unknown
	facts   versions.Facts
	gates   gates
	doing   string    // the present action
	refusal string    // why the outside refused
	foreign string    // who else changes the published values; empty: nobody was seen
	known   time.Time // when the first outcome outside was known
}

// outcome is the result of one step.
type outcome struct {
	waits bool          // nothing can be done now
	again time.Duration // when to check the set again; negative: after a change
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

// run takes the step: it looks at the set, decides which action is due, acts, and
// records the status. After an act outside with a known outcome, it decides again.
func (s *step) run(ctx context.Context) (o outcome, err error) {
	defer func() { s.record(ctx, err) }()
	if answered, err := s.gatherFacts(ctx); answered || err != nil {
		return outcome{}, err
	}
	for {
		action := s.decide()
		if err := s.mendBefore(ctx, action); err != nil {
			return s.hold(err)
		}
		done, err := s.act(ctx, action)
		switch {
		case err != nil:
			return s.hold(err)
		case action.Verb == versions.Wait, action.Verb == versions.Idle:
			return s.wait(action)
		case done:
			return outcome{}, nil
		}
	}
}

// gatherFacts reads the command, the annotations and the set, and gathers the other facts.
// It reports whether it answered a command; then the step is over.
func (s *step) gatherFacts(ctx context.Context) (answered bool, err error) {
	s.doing = "read"
	if s.now, err = s.r.now(ctx); err != nil {
		return false, err
	}
	if s.commanded.Swap(false) || !s.hasControl && time.Since(s.controlRead) > controlAgain {
		if err := s.readCommand(ctx); err != nil {
			s.commanded.Store(true)
			return false, err
		}
	}
	if err := s.readAnnotations(ctx); err != nil {
		return false, err
	}
	if err := s.readSet(ctx); err != nil {
		return false, err
	}
	if err := s.r.config.Seen.recordStep(s.ID, s.seen); err != nil {
		return false, err
	}
	if answered, err := s.answer(ctx); answered || err != nil || s.r.config.Paused {
		return answered, err
	}
	if err := s.gather(ctx); err != nil {
		return false, err
	}
	return s.refuse(ctx)
}

// decide returns the due action.
func (s *step) decide() versions.Action {
	switch {
	case s.r.config.Paused:
		return versions.Action{Verb: versions.Wait, Why: pausedWhy}
	case s.unnoted():
		return versions.Action{Verb: versions.Write, Doc: s.doc().NoteAlone(s.showing(), versions.Entry{At: s.now})}
	}
	return s.next()
}

// pausedWhy is the reason of a wait.
const pausedWhy = "rotation.paused is set"

// next returns the due action of the set. If the set is idle, a fault of its policy takes
// precedence as the reason.
func (s *step) next() versions.Action {
	action := versions.Next(s.doc(), s.Policy, s.facts)
	if action.Verb == versions.Idle && s.unclear != "" {
		return versions.Action{Verb: versions.Wait, Why: s.unclear}
	}
	return action
}

// record records what the poll must check and the status of the set. Then it clears
// everything that was read or made.
func (s *step) record(ctx context.Context, err error) {
	ids := s.variables()
	s.polled.Store(&ids)
	if doc := s.doc(); doc.Namespaces != nil && doc.Owner == s.Policy.Owner {
		s.namespaces.Store(&doc.Namespaces)
	}
	report := s.reportNow(ctx)
	if before := s.report.Load(); before != nil && s.held.read.IsZero() { // the step failed early
		known := *before
		known.Problem, known.WaitsFor, known.Unread = "", report.WaitsFor, report.Unread
		report = known
	}
	if err != nil {
		report.WaitsFor = err.Error()
	}
	s.report.Store(&report)
	if err == nil && s.wrote == nil || err != nil && !errors.Is(err, ErrConflict) {
		s.explain(ctx, report.WaitsFor)
	}
	for _, doc := range []*versions.Document{s.held.Document, s.wrote} {
		if doc != nil {
			doc.Wipe()
		}
	}
	s.held, s.wrote = Held{}, nil
}

// now returns the time of Conjur's clock.
func (r *Rotator) now(ctx context.Context) (time.Time, error) {
	now, err := r.config.Conjur.Time(ctx)
	switch {
	case err != nil:
		return now, err
	case now.IsZero():
		return now, errors.New("the access tokens lack their creation time, which rotation requires; ask the operator of Conjur")
	}
	return now.UTC().Truncate(time.Second), nil
}

// readSet reads the set again.
func (s *step) readSet(ctx context.Context) error {
	held, err := s.set.readNewest(ctx)
	if err != nil {
		return err
	}
	s.held, s.begun = held, held.Document != nil
	s.seen = max(s.seen, s.doc().Step)
	return nil
}

// doc returns the set as it was read; empty if the set has not begun.
func (s *step) doc() *versions.Document {
	if s.held.Document == nil {
		return versions.New(s.Policy.Owner)
	}
	return s.held.Document
}

// mine reports whether this process may change the set: it is the owner, and no later
// step was delivered. Otherwise only a "claim" counts.
func (s *step) mine() bool {
	return s.doc().Owner == s.Policy.Owner && s.seen <= s.doc().Step
}

// gather gathers the known facts beside the set.
func (s *step) gather(ctx context.Context) (err error) {
	doc, f := s.doc(), &s.facts
	s.ahead = doc.Ahead(s.now)
	*f = versions.Facts{Now: s.now, Seen: s.seen, Shown: map[string]bool{}, Tried: map[versions.Try]bool{}}
	if s.control.Answer == "" {
		f.Command = s.control.Command
	}
	if s.r.config.Targets != nil {
		if s.shown, err = s.r.shown(ctx, s.ID); err != nil {
			return err
		}
		for _, target := range s.shown {
			f.Seen = max(f.Seen, target.Step)
			f.Shown[target.Primary] = true
		}
		s.nameUnread()
	}
	s.seen = f.Seen
	if !s.mine() {
		return nil // only a command counts
	}
	s.watch()
	s.r.ledger.recordBegun(s.ID, doc, s.now, false)
	if doc.Paused {
		return nil // consumers are not asked in this state
	}
	due := s.Schedule.next(s.ID, doc)
	f.Due = !due.IsZero() && !s.now.Before(due)
	if f.Barred = s.unclear; f.Barred == "" {
		f.Barred = s.r.ledger.barred(&s.Plan, doc, s.now, false)
	}
	s.gates = s.askConsumers(ctx)
	f.Introduced, f.Left = s.gates.introduced, s.gates.left
	return nil
}

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
