package rotation

import (
	"context"
	"errors"
	"maps"
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

// Reports returns the known status of all sets, in ascending order.
func (r *Rotator) Reports() (reports []Report) {
	for _, id := range slices.Sorted(maps.Keys(r.sets)) {
		if report := r.sets[id].report.Load(); report != nil {
			reports = append(reports, *report)
		}
	}
	return reports
}

// Status returns the status of the set.
func (s Set) Status(ctx context.Context) Report {
	held, err := s.readNewest(ctx)
	return s.report(held, err)
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

// Check returns all reasons why the set cannot be rotated: faults of the set, missing
// rights, consumers that do not answer.
func (s Set) Check(ctx context.Context, gate Gate) (problems []string) {
	problems = lacks(ctx, s.Conjur, s.ID, "execute", "update")
	held, err := s.readNewest(ctx)
	if errors.Is(err, ErrUndeclared) {
		return problems
	}
	if report := s.report(held, err); report.Problem != "" {
		return append(problems, report.Problem)
	}
	primary, _ := held.Primary()
	return append(problems, gate.introduced(ctx, held.Document, primary)...)
}
