package rotation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
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

// annotatedFor is how long the annotations stay valid after they were read, unless they
// have a fault.
const annotatedFor = 10 * time.Minute

// annotatedAgain returns the time until the annotations are read again.
func (s *step) annotatedAgain() time.Duration {
	if s.unclear != "" {
		return longest
	}
	return annotatedFor
}

// asksPolicy reports whether annotations influence a set.
func (s *step) asksPolicy() bool { return s.r.config.FromPolicy && len(s.Publish) > 0 }

// readAnnotations periodically reads the annotations of the variables that a set publishes
// to. While the annotations have a fault, no version begins.
func (s *step) readAnnotations(ctx context.Context) error {
	if !s.asksPolicy() || !s.annotated.IsZero() && time.Since(s.annotated) < s.annotatedAgain() {
		return nil
	}
	var all wanted
	var problems []string
	for _, id := range slices.Sorted(maps.Keys(s.Publish)) {
		about, reading := s.r.config.Conjur.Resource(ctx, nil, id)
		if reading.Form != conjur.Given {
			return fmt.Errorf("cannot read the annotations of %q: %w", id, reading.Err)
		}
		w, wrong := parseAnnotations(about)
		for _, problem := range wrong {
			problems = append(problems, fmt.Sprintf("%q: %s", id, problem))
		}
		all = all.and(w)
	}
	s.annotated, s.unclear = time.Now(), strings.Join(problems, "; ")
	if s.Plan = s.configured; s.unclear == "" {
		all.fill(&s.Plan)
		return nil
	}
	s.emitOnce(Event{Reason: EventWaiting, Message: s.unclear, Warning: true})
	return nil
}

// watch records since when this process has seen versions without consumers.
func (s *step) watch() {
	for _, v := range s.doc().Versions {
		if v.State != versions.Retiring || v.Left.IsZero() {
			delete(s.watched, v.ID)
		} else if s.watched[v.ID].IsZero() {
			s.watched[v.ID] = time.Now()
		}
	}
}
