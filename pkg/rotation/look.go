package rotation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// Look returns the state of all sets and what each waits for, in ascending order. It
// changes nothing.
func (r *Rotator) Look(ctx context.Context) []Report {
	reports := []Report{} // JSON has a list, also without sets
	for _, id := range slices.Sorted(maps.Keys(r.sets)) {
		s := r.begin(r.sets[id])
		if err := s.inspect(ctx); err != nil {
			reports = append(reports, s.set.report(s.held, err))
			continue
		}
		report := s.reportNow(ctx)
		report.Due, report.Unasked = s.Schedule.next(id, s.doc()), s.unasked(ctx) // also before it begins
		reports = append(reports, report)
	}
	return reports
}

// inspect finds out why a set waits.
func (s *step) inspect(ctx context.Context) (err error) {
	s.now, err = s.r.now(ctx)
	if err == nil {
		err = s.readAnnotations(ctx)
	}
	if err == nil {
		err = s.readSet(ctx)
	}
	if err == nil {
		err = s.gather(ctx)
	}
	if err = cmp.Or(err, s.gates.unknown); err != nil {
		return err
	}
	barred := s.barred(ctx)
	var hold *holdError
	if s.mine() && errors.As(s.checkVacant(ctx), &hold) {
		barred = hold.why
	}
	switch action := s.next(); {
	case barred != "":
		s.waitsFor = barred
	case s.gates.waits != "":
		s.waitsFor = s.gates.waits
	case action.Verb == versions.Idle:
		s.waitsFor = dueIn(s.Schedule.next(s.ID, s.doc()), s.now)
	case action.Verb == versions.Wait:
		s.waitsFor = action.Why
	default:
		s.waitsFor = "its next step, " + string(action.Verb)
	}
	if s.r.config.Paused {
		s.waitsFor = pausedWhy
	}
	return nil
}

// barred returns the outside objects that belong to another set, or to a later state of
// this set.
func (s *step) barred(ctx context.Context) string {
	fenced, ok := s.Actuator.(actuators.Fenced)
	if !ok || s.doc().Owner != s.Policy.Owner {
		return ""
	}
	var problems []string
	for _, err := range fenced.Barred(ctx, s.doc()) {
		problems = append(problems, err.Error())
	}
	return strings.Join(problems, "; ")
}

func dueIn(at, now time.Time) string {
	if at.IsZero() {
		return "a command"
	}
	return "due in " + brief.Duration(at.Sub(now).Round(time.Minute))
}

// Check returns all reasons why sets cannot be rotated, by set: missing rights, logins
// that do not work, consumers that do not answer. It also returns, by id, the variables
// that a policy wants rotated but that belong to no set.
func (r *Rotator) Check(ctx context.Context) map[string][]string {
	all := map[string][]string{}
	for id, s := range r.sets {
		if problems := r.begin(s).checkSetup(ctx); len(problems) > 0 {
			all[id] = problems
		}
	}
	maps.Copy(all, r.unpublished(ctx))
	return all
}

func (s *step) checkSetup(ctx context.Context) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	changed := append([]string{s.ID, versions.ControlOf(s.ID)}, slices.Sorted(maps.Keys(s.Publish))...)
	for _, id := range changed {
		problems = append(problems, lacks(ctx, s.r.config.Conjur, id, "execute", "update")...)
	}
	if err := s.readAnnotations(ctx); err != nil {
		add("%v", err)
	} else if s.unclear != "" {
		add("%s", s.unclear)
	}
	if err := s.readSet(ctx); err != nil && !errors.Is(err, ErrUndeclared) {
		add("%v", err)
	}
	if checker, ok := s.Actuator.(actuators.Checker); ok {
		for _, problem := range checker.Check(ctx, s.doc()) {
			add("%v", problem)
		}
	}
	shown, err := s.r.shown(ctx, s.ID)
	if err != nil {
		add("%v", err)
	}
	if checker, ok := s.Consumers.(interface {
		Check(context.Context, *versions.Document, []Shown) []string
	}); ok {
		problems = append(problems, checker.Check(ctx, s.doc(), shown)...)
	}
	if checker, ok := s.r.config.Targets.(interface {
		Check(context.Context, []Shown) []string
	}); ok {
		problems = append(problems, checker.Check(ctx, shown)...)
	}
	for _, id := range slices.Sorted(maps.Values(s.Adopt)) {
		lacks := lacks(ctx, s.r.config.Conjur, id, "execute")
		problems = append(problems, lacks...)
		if len(s.doc().Versions) == 0 && lacks == nil && s.r.config.Conjur.Variable(ctx, id, "").Form == conjur.Missing {
			add("%q, which this set adopts, has no value; set it", id)
		}
	}
	problems = append(problems, s.unusable(ctx)...)
	values, err := s.publications(s.doc())
	wipe(values)
	if err != nil {
		add("%v", err)
	}
	if now, err := s.r.now(ctx); err == nil {
		if ahead := s.doc().Ahead(now); ahead != "" {
			add("%s", ahead)
		}
	}
	primary, ok := s.doc().Primary()
	if !ok {
		return problems
	}
	if s.doc().Owner != s.r.config.Owner {
		add("%s; this is %q", s.doc().Owned(), s.r.config.Owner)
	}
	if s.Actuator != nil {
		if err := s.Actuator.Verify(ctx, primary); err != nil {
			add("the primary %s cannot be used: %v", primary.ID, err)
		}
	}
	return problems
}

// lacks returns the missing privileges on a variable.
func lacks(ctx context.Context, client Conjur, id string, privileges ...string) (problems []string) {
	for _, privilege := range privileges {
		switch reading := client.Check(ctx, nil, id, privilege); {
		case reading.Form == conjur.Missing:
			return []string{fmt.Sprintf("%q is not declared, or this identity cannot see it", id)}
		case reading.Form == conjur.No:
			problems = append(problems, fmt.Sprintf("this identity lacks %q on %q; permit that in the policy", privilege, id))
		case reading.Err != nil:
			problems = append(problems, fmt.Sprintf("cannot check whether this identity has %q on %q: %v", privilege, id, reading.Err))
		}
	}
	return problems
}

// unusable returns the variables of a set that cannot serve their purpose because of
// their values. Another configuration may store a set in one of them.
func (s *step) unusable(ctx context.Context) (problems []string) {
	problems, _ = s.occupied(ctx) // rights are checked elsewhere
	if s.Generate.X509 == nil || s.Generate.X509.CA == "" {
		return problems
	}
	ca := s.Generate.X509.CA
	held, err := Set{Conjur: s.r.config.Conjur, ID: ca}.readNewest(ctx)
	if err == nil && held.Document == nil {
		if s.r.sets[ca] != nil { // it begins automatically
			return problems
		}
		err = errors.New("the set has not begun")
	}
	if err != nil {
		return append(problems, fmt.Sprintf("cannot read the certificate's authority %q: %v", ca, err))
	}
	if primary, _ := held.Primary(); primary.Parts["crt"].Len() == 0 || primary.Parts["private"].Len() == 0 {
		problems = append(problems, fmt.Sprintf("the primary of %q has no parts crt and private; name the set of an authority", ca))
	}
	return problems
}

// checkVacant returns nil if publishing and adopting overwrite and copy no variable that
// controls rotation. Otherwise the error is a *holdError.
func (s *step) checkVacant(ctx context.Context) error {
	problems, err := s.occupied(ctx)
	if len(problems) > 0 {
		return &holdError{why: strings.Join(problems, "; "), foreign: true}
	}
	return err
}

// occupied returns the variables to publish to or to adopt that hold a set or its
// commands. The error names those that cannot be read.
func (s *step) occupied(ctx context.Context) (problems []string, err error) {
	look := func(id string, view bool, advice string) {
		what, unknown := s.r.holds(ctx, id, view)
		if what != "" {
			problems = append(problems, fmt.Sprintf("%q holds %s%s", id, what, advice))
		}
		err = errors.Join(err, unknown)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Publish)) {
		look(id, s.Publish[id].Text == "", ", which publishing would replace; publish to another variable")
	}
	if len(s.doc().Versions) > 0 { // the existing value was adopted
		return problems, err
	}
	for _, id := range slices.Sorted(maps.Values(s.Adopt)) {
		look(id, false, "; adopt another variable")
	}
	return problems, err
}

// holds names the rotation data in a variable; "" for any other value. With view, the
// variable may hold a published view of a set, which has no identity.
func (r *Rotator) holds(ctx context.Context, id string, view bool) (string, error) {
	const commands = "the commands of a set"
	value, found, err := r.value(ctx, id)
	defer value.Wipe()
	set, steers := versions.ControlledBy(id)
	if c, err := parseControl(value.Bytes()); found && err == nil && (steers || c.ID != "") {
		return commands, nil
	}
	if steers && err == nil { // it may have no value yet, or a damaged one
		steered, _, _ := r.value(ctx, set) // this identity may lack the right to read the set
		defer steered.Wipe()
		if versions.IsSet(steered.Bytes()) {
			return commands, nil
		}
	}
	if !found || !versions.IsSet(value.Bytes()) {
		return "", err
	}
	if doc, err := versions.Parse(value.Bytes()); view && err == nil && doc.Identity == "" {
		return "", nil
	}
	return "a set of versions", nil
}

// value returns the present value of a variable; false if it has no value.
func (r *Rotator) value(ctx context.Context, id string) (value secret.Value, found bool, err error) {
	values := r.config.Conjur.Variable(ctx, id, "")
	if value, found = values.Found[id]; !found && values.Form != conjur.Missing {
		err = fmt.Errorf("what %q holds is not known: %w", id, errors.Join(values.Err, values.Bad[id]))
	}
	return value, found, err
}
