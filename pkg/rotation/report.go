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

// report returns the status of a set, as far as it was read.
func (s Set) report(held Held, err error) Report {
	r := Report{Set: s.ID}
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
	r.Since, r.Shown = latest(held.Document), held.Namespaces
	for _, v := range held.Versions {
		r.Versions = append(r.Versions, VersionReport{v.ID, v.State, v.Since, v.PartNames()})
	}
	return r
}

// reportNow returns the status of a set, as far as it was read. The set need not have
// begun, because it begins automatically.
func (s *step) reportNow(ctx context.Context) Report {
	report := s.set.report(s.held, nil)
	report.Problem, report.WaitsFor, report.Unread = "", s.awaited(), s.reportUnread()
	if s.held.Document != nil {
		report.Due, report.Unasked = s.Schedule.next(s.ID, s.doc()), s.unasked(ctx)
	}
	return report
}

// awaited returns why the set waits, why that may take long, and earlier errors.
func (s *step) awaited() string {
	said := []string{s.waitsFor, s.ahead, s.doc().Refused()}
	return strings.Join(slices.DeleteFunc(said, func(text string) bool { return text == "" }), "; ")
}

// unasked returns the Pods that use a set but are not asked.
func (s *step) unasked(ctx context.Context) []string {
	if consumers, ok := s.Consumers.(interface {
		Unasked(context.Context, []Shown) []string
	}); ok {
		return consumers.Unasked(ctx, s.shown)
	}
	return nil
}

// outcome is the result of one step.
type outcome struct {
	waits bool          // nothing can be done now
	again time.Duration // when to check the set again; negative: after a change
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

const (
	// shortest and longest limit the time between two checks of a closed gate. The time
	// is a tenth of how long the gate has been closed.
	shortest = time.Second
	longest  = 30 * time.Second
	// verifiedFor is how long a login counts as good after its use, while its set is
	// idle.
	verifiedFor = time.Hour
)

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
