package rotation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Report is the status of a set. It contains no byte of a part.
type Report struct {
	Set      string          `json:"set"`
	Problem  string          `json:"problem,omitempty"` // if set, some other fields are unknown
	Owner    string          `json:"owner,omitempty"`
	Identity string          `json:"identity,omitempty"`
	Step     uint64          `json:"step,omitempty"`
	Stage    string          `json:"stage,omitempty"`
	Since    time.Time       `json:"since,omitzero"` // of the last step
	Primary  string          `json:"primary,omitempty"`
	Made     time.Time       `json:"made,omitzero"`      // the primary
	Due      time.Time       `json:"due,omitzero"`       // the next version
	WaitsFor string          `json:"waitsFor,omitempty"` // of the rotator
	Unasked  []string        `json:"unasked,omitempty"`  // Pods that use it but are not asked
	Shown    []string        `json:"shown,omitempty"`    // the namespaces whose Secrets show it
	Unread   []Unread        `json:"unread,omitempty"`   // those that Syncer cannot follow now
	Versions []VersionReport `json:"versions,omitempty"`
}

// VersionReport is the status of a version.
type VersionReport struct {
	ID    string         `json:"id"`
	State versions.State `json:"state"`
	Since time.Time      `json:"since"`
	Parts []string       `json:"parts,omitempty"`
}

// newReport returns the status of a set, as far as it was read.
func newReport(set string, held Held, err error) Report {
	r := Report{Set: set}
	switch {
	case err != nil:
		r.Problem = err.Error()
	case held.Document == nil:
		r.Problem = "it has not begun; use init"
	}
	if held.Document == nil {
		return r
	}
	primary, _ := held.Primary()
	r.Owner, r.Identity, r.Step, r.Stage, r.Primary, r.Made = held.Owner, held.Identity, held.Step, held.Stage(), primary.ID, primary.Made
	r.Since, r.Shown = findLatest(held.Document), held.Namespaces
	for _, v := range held.Versions {
		r.Versions = append(r.Versions, VersionReport{v.ID, v.State, v.Since, v.PartNames()})
	}
	return r
}

// outcome is the result of one step.
type outcome struct {
	waits bool          // nothing can be done now
	again time.Duration // when to check the set again; negative: after a change
}

// report tells operators, the poll and the sender of a command what the step did, or what
// the set waits for. Then it clears everything that was read or made.
func (s *step) report(ctx context.Context, action versions.Action, err error) (o outcome, _ error) {
	if hold, ok := errors.AsType[*holdError](err); ok {
		if hold.foreign {
			s.foreign = hold.why
		}
		action, err = versions.Action{Verb: versions.Wait, Why: hold.why, Until: hold.until}, nil
	}
	if err == nil && s.wrote != nil {
		s.announce()
	}
	if err == nil && (action.Verb == versions.Wait || action.Verb == versions.Idle) {
		o = s.reportWait(action)
	}
	set := s.set
	set.storePolled()
	if s.doc.Namespaces != nil && s.owned() {
		set.namespaces.Store(&s.doc.Namespaces)
	}
	report := s.status(ctx)
	if before := set.report.Load(); before != nil && s.held.read.IsZero() { // the step failed early
		known := *before
		known.Problem, known.WaitsFor, known.Unread = "", report.WaitsFor, report.Unread
		report = known
	}
	if err != nil {
		report.WaitsFor = err.Error()
	}
	set.report.Store(&report)
	// A command that this step has not read the set for may be for another process.
	pending := !s.held.read.IsZero() && s.owned() && set.commands.last.pending(s.now)
	if pending && (err == nil && s.wrote == nil || err != nil && !errors.Is(err, ErrConflict)) {
		set.commands.explain(ctx, report.WaitsFor)
	}
	s.doc.Wipe()
	if s.wrote != nil {
		s.wrote.Wipe()
	}
	return o, err
}

// announce emits the Events for a write that holds, and records their results.
func (s *step) announce() {
	for _, e := range listChanges(s.doc, s.wrote, s.refusal) {
		if e.Result == ResultPromoted || e.Result == ResultDropped {
			s.startLimiter.recordOutcome(&s.set.Plan, e.Result == ResultPromoted)
		}
		s.set.announcer.emit(e)
	}
}

// status returns the status of a set, as far as it was read. The set need not have begun,
// because it begins automatically.
func (s *step) status(ctx context.Context) Report {
	report := newReport(s.set.ID, s.held, nil)
	said := []string{s.set.waitsFor, s.set.future, s.doc.RefusalText()}
	report.WaitsFor = strings.Join(slices.DeleteFunc(said, func(text string) bool { return text == "" }), "; ")
	report.Problem, report.Unread = "", reportUnread(s.set.unread)
	if s.held.Document != nil {
		report.Due, report.Unasked = s.set.Schedule.findDue(s.set.ID, s.doc), s.set.listUnasked(ctx, s.shown)
	}
	return report
}

// reportWait handles a set that waits. It emits the reason of the wait as an Event, and
// returns the time of the next check.
func (s *step) reportWait(action versions.Action) outcome {
	set, why := s.set, cmp.Or(s.foreign, s.gates.waits, addRefusal(action.Why, s.refusal))
	stage := s.doc.Stage()
	switch {
	case !s.mayChange() || s.foreign != "":
		set.announcer.emitOnce(Event{Reason: EventWaiting, Message: why, Warning: true})
	case stage != "idle":
		set.announcer.emitOnce(Event{Reason: EventWaiting, Message: stage + ": " + why})
	}
	active := s.mayChange() && !s.doc.Paused && !s.config.Paused
	if set.waitsFor = why; stage == "idle" && active && action.Verb == versions.Idle && s.foreign == "" {
		set.waitsFor, set.announcer.waiting = "", "" // a repetition counts as news
	}
	switch {
	case stage == "idle":
		return outcome{waits: true, again: s.idleFor(active)}
	case !active:
		return outcome{waits: true, again: -1}
	}
	return outcome{waits: true, again: s.closedFor(action)}
}

// idleFor returns the time until an idle set is checked again; negative: after a change.
func (s *step) idleFor(active bool) time.Duration {
	var times []time.Duration
	if due := s.set.Schedule.findDue(s.set.ID, s.doc); !due.IsZero() && active {
		times = append(times, max(due.Sub(s.now), shortest))
	}
	if s.set.Actuator != nil {
		times = append(times, verifiedFor)
	}
	if s.asksPolicy() {
		times = append(times, s.set.annotatedAgain())
	}
	if s.foreign != "" || len(s.set.unread) > 0 {
		times = append(times, longest)
	}
	if len(times) == 0 {
		return -1
	}
	return slices.Min(times)
}

// closedFor returns the time until a closed gate is checked again.
func (s *step) closedFor(action versions.Action) time.Duration {
	again := min(max(s.now.Sub(findLatest(s.doc))/10, shortest), longest)
	if !action.Until.IsZero() { // by Conjur's clock
		again = min(again, max(action.Until.Sub(s.now), 0)+time.Millisecond)
	}
	if !s.gates.until.IsZero() { // by the local clock
		again = min(again, max(time.Until(s.gates.until), 0)+time.Millisecond)
	}
	return again
}

// findLatest returns when the set changed last.
func findLatest(doc *versions.Document) (at time.Time) {
	for _, v := range doc.Versions {
		if v.Since.After(at) {
			at = v.Since
		}
	}
	return at
}
