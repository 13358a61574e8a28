package rotation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// step is one step of a set, with the knowledge that lasts for the step.
type step struct {
	set          *rotated
	config       *Config
	startLimiter *startLimiter
	once         bool          // for Rotator.Once, which does not wait
	tried        time.Duration // how long an outside outcome counts as a fact

	now     time.Time          // by Conjur's clock
	held    Held               // as it was read
	doc     *versions.Document // that of held; empty if the set has not begun
	wrote   *versions.Document // nil: nothing was written
	answer  *versions.Entry    // what the sender of the command must be told; nil: nothing
	shown   []Shown            // what the targets show of it; nil: unknown
	facts   versions.Facts
	gates   gates
	doing   string    // the present action
	refusal string    // why the outside refused
	foreign string    // who else changes the published values; empty: nobody was seen
	known   time.Time // when the first outcome outside was known
}

const (
	// answer is the action that answers a command.
	answer versions.Verb = "answer"
	// pausedWhy is the reason of a wait.
	pausedWhy = "rotation.paused is set"
)

// run takes the step: it looks at the set, decides which action is due, acts, and reports.
// One action is one write, which is settled before it is reported. Each act outside is
// written to the set before. If its outcome is known, the step decides again.
func (s *step) run(ctx context.Context) (outcome, error) {
	var action versions.Action
	err := s.readSituation(ctx)
	for done := false; !done && err == nil; {
		switch {
		case s.answer != nil:
			action = versions.Action{Verb: answer}
		case s.config.Paused:
			action = versions.Action{Verb: versions.Wait, Why: pausedWhy}
		case s.unnoted():
			action = versions.Action{Verb: versions.Write, Doc: s.doc.NoteAlone(listNamespaces(s.shown, s.doc), versions.Entry{At: s.now})}
		default:
			action = s.decide()
		}
		done, err = s.act(ctx, action)
	}
	return s.report(ctx, action, err)
}

// decide returns the due action of the set. If the set is idle, a fault of its policy takes
// precedence as the reason.
func (s *step) decide() versions.Action {
	action := versions.Next(s.doc, s.set.Policy, s.facts)
	if action.Verb == versions.Idle && s.set.faults != "" {
		return versions.Action{Verb: versions.Wait, Why: s.set.faults}
	}
	return action
}

// readSituation reads the command, the annotations and the set, and gathers the other facts. A
// command that has its outcome is answered first.
func (s *step) readSituation(ctx context.Context) error {
	s.doing = "read"
	if err := readInOrder(ctx, s.readClock, s.readCommand, s.readAnnotations, s.readSet); err != nil {
		return err
	}
	if err := s.config.Seen.recordStep(s.set.ID, s.set.seen); err != nil {
		return err
	}
	command := s.set.commands.last
	if e, ok := s.doc.Answer(command.ID); ok && command.Answer == "" && s.owned() {
		s.answer = &e
	}
	if s.answer != nil || s.config.Paused {
		return nil
	}
	err := s.gatherFacts(ctx)
	if why := s.findRefusal(); err == nil && why != "" {
		s.answer = &versions.Entry{What: "refused: " + why, Refused: true}
	}
	return err
}

// readInOrder reads one thing after the other, until one cannot be read.
func readInOrder(ctx context.Context, reads ...func(context.Context) error) (err error) {
	for i := 0; i < len(reads) && err == nil; i++ {
		err = reads[i](ctx)
	}
	return err
}

// readClock reads Conjur's clock.
func (s *step) readClock(ctx context.Context) error {
	now, err := s.config.Conjur.Time(ctx)
	if err == nil && now.IsZero() {
		err = errors.New("the access tokens lack their creation time, which rotation requires; ask the operator of Conjur")
	}
	s.now = now.UTC().Truncate(time.Second)
	return err
}

func (s *step) readCommand(ctx context.Context) error { return s.set.commands.update(ctx, s.now) }

// readSet reads the set again.
func (s *step) readSet(ctx context.Context) error {
	held, err := s.set.stored.readNewest(ctx)
	if err != nil {
		return err
	}
	if s.held, s.set.hasValue = held, held.Document != nil; s.set.hasValue {
		s.doc = held.Document
	}
	s.set.seen = max(s.set.seen, s.doc.Step)
	return nil
}

// readAnnotations periodically reads the annotations of the variables that a set publishes
// to. While the annotations have a fault, no version begins.
func (s *step) readAnnotations(ctx context.Context) error {
	set := s.set
	if !s.asksPolicy() || !set.annotated.IsZero() && time.Since(set.annotated) < set.annotatedAgain() {
		return nil
	}
	w, unclear, err := readWanted(ctx, s.config.Conjur, slices.Sorted(maps.Keys(set.Publish)))
	if err != nil {
		return err
	}
	set.Plan, set.annotated, set.faults = set.configured, time.Now(), unclear
	if unclear != "" {
		set.announcer.emitOnce(Event{Reason: EventWaiting, Message: unclear, Warning: true})
	} else {
		w.fill(&set.Plan)
	}
	return nil
}

// asksPolicy reports whether annotations influence a set.
func (s *step) asksPolicy() bool { return s.config.FromPolicy && len(s.set.Publish) > 0 }

// owned reports whether this controller is the owner of the set.
func (s *step) owned() bool { return s.doc.Owner == s.set.Policy.Owner }

// mayChange reports whether this process may change the set: it is the owner, and no later
// step was delivered. Otherwise only a "claim" counts.
func (s *step) mayChange() bool { return s.owned() && s.set.seen <= s.doc.Step }

// gatherFacts gathers the known facts beside the set.
func (s *step) gatherFacts(ctx context.Context) (err error) {
	set, f := s.set, &s.facts
	set.future = s.doc.FutureText(s.now)
	*f = versions.Facts{Now: s.now, Seen: set.seen, Shown: map[string]bool{}, Tried: map[versions.Try]bool{}}
	if set.commands.last.Answer == "" {
		f.Command = set.commands.last.Command
	}
	if s.shown, err = readShown(ctx, s.config.Targets, set.ID); err != nil {
		return err
	}
	for _, target := range s.shown {
		f.Seen = max(f.Seen, target.Step)
		f.Shown[target.Primary] = true
	}
	s.nameUnread()
	set.seen = f.Seen
	if !s.mayChange() {
		return nil // only a command counts
	}
	set.watchRetiring(s.doc)
	s.startLimiter.recordBegun(set.ID, s.doc, s.now, false)
	if s.doc.Paused {
		return nil // consumers are not asked in this state
	}
	due := set.Schedule.findDue(set.ID, s.doc)
	f.Due = !due.IsZero() && !s.now.Before(due)
	if f.Barred = set.faults; f.Barred == "" {
		f.Barred = s.startLimiter.barred(&set.Plan, s.doc, s.now, false)
	}
	s.gates = set.askConsumers(ctx, s.doc, s.shown)
	f.Introduced, f.Left = s.gates.introduced, s.gates.left
	return nil
}

// nameUnread records which targets can no longer be read. One Event names them.
func (s *step) nameUnread() {
	set := s.set
	set.unread = listUnread(s.shown, s.doc)
	var names []string
	for _, target := range set.unread {
		names = append(names, fmt.Sprintf("%s: %s", target, target.Unread))
	}
	if is := brief.List(names); is != set.unreadEvent && !s.config.Paused {
		if set.unreadEvent = is; is != "" {
			set.announcer.emit(Event{Reason: EventWaiting, Warning: true, Message: "Syncer cannot follow what shows the set: " + is + "; a new version waits a while for it, and no version is retired before"})
		}
	}
}

// unnoted reports whether the set, if this process may change it, lacks a namespace that
// shows it. A later process that cannot read the namespace must know about it.
func (s *step) unnoted() bool {
	return s.held.Document != nil && s.shown != nil && s.mayChange() && !s.doc.Paused && !s.doc.Noted(listNamespaces(s.shown, s.doc))
}

// findRefusal returns why the set cannot obey the pending command while it is paused, or
// while a later step was delivered. In these states nothing is written to the set. A
// command that stayed pending would block "resume" and "claim".
func (s *step) findRefusal() (why string) {
	verb := s.set.commands.last.Verb
	switch {
	case !s.owned() || !s.set.commands.last.pending(s.now) || verb == "claim":
	case !s.mayChange():
		return `the set waits for "claim"`
	case s.doc.Paused && verb != "pause" && verb != "resume":
		return `the set is paused; "resume" it first`
	}
	return ""
}
