package rotation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

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
	// steeredAgain is the time between checks for a control variable that could not be
	// set.
	steeredAgain = 10 * time.Minute
	// mostActs is the maximum number of outside acts in a step: one before the
	// revocation, and three for the revocation.
	mostActs = 4
	// triedFor is how long an outside outcome counts as a fact.
	triedFor = time.Minute
)

// outcome is the result of one step.
type outcome struct {
	waits bool          // nothing can be done now
	again time.Duration // when to check the set again; negative: after a change
}

// Sync takes one step of a set. It returns the time until the next step; negative means
// that none is due before something changes.
func (r *Rotator) Sync(ctx context.Context, id string) (again time.Duration) {
	s := r.sets[id]
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout+mostActs*s.Timeout)
	defer cancel()
	o, err := r.step(ctx, s)
	if err == nil {
		s.failures = 0
		return o.again
	}
	if errors.Is(err, ErrConflict) {
		return 0
	}
	s.failures++
	early := errors.Is(err, ErrEarly)
	if !early && r.config.Listener != nil {
		r.config.Listener.Failed(s.ID, s.doing)
	}
	if !early && s.failures >= 3 {
		r.waiting(s, Event{Reason: EventFailed, Message: err.Error(), Warning: true})
	}
	r.config.Log.Debug("A step with a set failed", zap.String("set", id), zap.Error(err))
	return r.retryAfter(s.failures)
}

// step reads a set, determines the due action, and carries it out.
func (r *Rotator) step(ctx context.Context, s *rotated) (o outcome, err error) {
	s.doing, s.refusal, s.hand = "read", "", ""
	defer func() {
		s.noted()
		s.reported(ctx, err)
		s.forget()
	}()
	now, err := r.now(ctx)
	if err != nil {
		return o, err
	}
	if s.commanded.Swap(false) || !s.steered && time.Since(s.controlled) > steeredAgain {
		if err := r.control(ctx, s, now); err != nil {
			s.commanded.Store(true)
			return o, err
		}
	}
	if err := r.annotations(ctx, s); err != nil {
		return o, err
	}
	if err := r.read(ctx, s); err != nil {
		return o, err
	}
	if err := r.config.Seen.note(s.ID, s.seen); err != nil {
		return o, err
	}
	if done, err := r.answer(ctx, s); done || err != nil {
		return o, err
	}
	if r.config.Paused {
		return r.wait(ctx, s, gates{}, now, versions.Action{Verb: versions.Wait, Why: "rotation.paused is set"})
	}
	facts, g, err := r.facts(ctx, s, now)
	if err != nil {
		return o, err
	}
	if done, err := r.refuse(ctx, s, now); done || err != nil {
		return o, err
	}
	if s.unnoted() {
		return o, r.write(ctx, s, s.doc().NoteAlone(s.showing(), versions.Entry{At: now}))
	}
	return r.do(ctx, s, facts, g, s.next(facts))
}

// next returns the due action. For an idle set, a fault of its policy takes precedence as
// the reason.
func (s *rotated) next(facts versions.Facts) versions.Action {
	action := versions.Next(s.doc(), s.Policy, facts)
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
		return now, errors.New("the access tokens do not have the time at which they were made, which rotation goes by")
	}
	return now.UTC().Truncate(time.Second), nil
}

// read reads the set again.
func (r *Rotator) read(ctx context.Context, s *rotated) error {
	held, err := s.set.read(ctx)
	if err != nil {
		return err
	}
	s.held, s.begun = held, held.Document != nil
	s.seen = max(s.seen, s.doc().Step)
	return nil
}

// doc returns the set as it was read; empty if the set has not begun.
func (s *rotated) doc() *versions.Document {
	if s.held.Document == nil {
		return versions.New(s.Policy.Owner)
	}
	return s.held.Document
}

// mine reports whether this process may change the set: it is the owner, and no later
// step was delivered. Otherwise only a "claim" counts.
func (s *rotated) mine() bool {
	return s.doc().Owner == s.Policy.Owner && s.seen <= s.doc().Step
}

// facts gathers the known facts beside the set.
func (r *Rotator) facts(ctx context.Context, s *rotated, now time.Time) (f versions.Facts, g gates, err error) {
	doc := s.doc()
	s.ahead = doc.Ahead(now)
	f = versions.Facts{Now: now, Seen: s.seen, Shown: map[string]bool{}, Tried: map[versions.Try]bool{}}
	if s.control.answer == "" {
		f.Command = s.control.command
	}
	if r.config.Targets != nil {
		if s.shown, err = r.shown(ctx, s.ID); err != nil {
			return f, g, err
		}
		for _, target := range s.shown {
			f.Seen = max(f.Seen, target.Step)
			f.Shown[target.Primary] = true
		}
		r.nameUnread(s)
	}
	s.seen = f.Seen
	if !s.mine() {
		return f, g, nil // only a command counts
	}
	s.watch()
	r.ledger.note(s.ID, doc, now)
	if doc.Paused {
		return f, g, nil // consumers are not asked in this state
	}
	due := s.Schedule.next(s.ID, doc)
	f.Due = !due.IsZero() && !now.Before(due)
	f.Barred = cmp.Or(s.unclear, r.ledger.barred(s, doc, now))
	g = s.ask(ctx, doc)
	f.Introduced, f.Left = g.introduced, g.left
	return f, g, nil
}

// wait handles a set that waits: an Event says why, and the set is checked again in time.
func (r *Rotator) wait(ctx context.Context, s *rotated, g gates, now time.Time, action versions.Action) (outcome, error) {
	doc := s.doc()
	mine := s.mine()
	if s.held.Document != nil && mine && !r.config.Paused && s.unmended.Swap(false) {
		s.doing = "publish"
		if err := r.mend(ctx, s); err != nil {
			s.unmended.Store(true)
			var hand *otherHandError
			if !errors.As(err, &hand) {
				return outcome{}, err
			}
			s.hand = hand.why
		}
	}
	why := s.because(action.Why)
	if g.waits != "" {
		why = g.waits
	}
	if s.hand != "" {
		why = s.hand
	}
	if !mine || s.hand != "" {
		r.waiting(s, Event{Reason: EventWaiting, Message: why, Warning: true})
	}
	o := outcome{waits: true, again: -1}
	stage := doc.Stage()
	if stage == "idle" {
		if due := s.Schedule.next(s.ID, doc); !due.IsZero() && mine && !doc.Paused && !r.config.Paused {
			o.again = max(due.Sub(now), shortest)
		}
		if !mine || doc.Paused || r.config.Paused || action.Verb != versions.Idle || s.hand != "" {
			s.waitsFor(why)
		} else {
			s.waitsFor("")
			s.waited = "" // a repetition counts as news
		}
		if s.Actuator != nil {
			o.again = sooner(o.again, verifiedFor)
		}
		if r.asksPolicy(s) {
			o.again = sooner(o.again, s.annotatedAgain())
		}
		if s.hand != "" || len(s.unread) > 0 {
			o.again = sooner(o.again, longest)
		}
		return o, nil
	}
	s.waitsFor(why)
	if mine && s.hand == "" {
		r.waiting(s, Event{Reason: EventWaiting, Message: fmt.Sprintf("%s: %s", stage, why)})
	}
	if !mine || doc.Paused || r.config.Paused {
		return o, nil
	}
	since := now.Sub(latest(doc))
	o.again = min(max(since/10, shortest), longest)
	if !action.Until.IsZero() { // by Conjur's clock
		o.again = min(o.again, max(action.Until.Sub(now), 0)+time.Millisecond)
	}
	if !g.until.IsZero() { // by the local clock
		o.again = min(o.again, max(time.Until(g.until), 0)+time.Millisecond)
	}
	return o, nil
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

// waiting emits, once, the reason why a set waits.
func (r *Rotator) waiting(s *rotated, e Event) {
	if s.waited != e.Message {
		s.waited = e.Message
		r.emit(s, e)
	}
}
