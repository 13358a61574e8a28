package rotation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Look returns the state of all sets and what each waits for, in ascending order. It
// changes nothing.
func (r *Rotator) Look(ctx context.Context) []Report {
	reports := []Report{} // JSON has a list, also without sets
	for _, id := range slices.Sorted(maps.Keys(r.sets)) {
		s := r.beginStep(r.sets[id])
		if err := r.inspect(ctx, s); err != nil {
			reports = append(reports, newReport(id, s.held, err))
			continue
		}
		report := s.status(ctx)
		report.Due, report.Unasked = s.set.Schedule.findDue(id, s.doc), s.set.listUnasked(ctx, s.shown) // also before it begins
		reports = append(reports, report)
	}
	return reports
}

// inspect finds out why a set waits.
func (r *Rotator) inspect(ctx context.Context, s *step) (err error) {
	err = readInOrder(ctx, s.readClock, s.readAnnotations, s.readSet, s.gatherFacts)
	if err = cmp.Or(err, s.gates.unknown); err != nil {
		return err
	}
	barred := listForeign(ctx, s)
	var hold *holdError
	if s.mayChange() && errors.As(s.set.publisher.checkVacant(ctx, s.doc), &hold) {
		barred = hold.why
	}
	switch action := s.decide(); {
	case barred != "":
		s.set.waitsFor = barred
	case s.gates.waits != "":
		s.set.waitsFor = s.gates.waits
	case action.Verb == versions.Idle:
		s.set.waitsFor = describeDue(s.set.Schedule.findDue(s.set.ID, s.doc), s.now)
	case action.Verb == versions.Wait:
		s.set.waitsFor = action.Why
	default:
		s.set.waitsFor = "its next step, " + string(action.Verb)
	}
	if r.config.Paused {
		s.set.waitsFor = pausedWhy
	}
	return nil
}

// listForeign returns the outside objects that belong to another set, or to a later state
// of this set.
func listForeign(ctx context.Context, s *step) string {
	fenced, ok := s.set.Actuator.(actuators.Fenced)
	if !ok || !s.owned() {
		return ""
	}
	var problems []string
	for _, err := range fenced.Barred(ctx, s.doc) {
		problems = append(problems, err.Error())
	}
	return strings.Join(problems, "; ")
}

func describeDue(at, now time.Time) string {
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
		if problems := r.checkSetup(ctx, r.beginStep(s)); len(problems) > 0 {
			all[id] = problems
		}
	}
	maps.Copy(all, r.listUnpublished(ctx))
	return all
}

func (r *Rotator) checkSetup(ctx context.Context, s *step) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	changed := append([]string{s.set.ID, versions.ControlOf(s.set.ID)}, slices.Sorted(maps.Keys(s.set.Publish))...)
	for _, id := range changed {
		problems = append(problems, listMissingRights(ctx, r.config.Conjur, id, "execute", "update")...)
	}
	if err := s.readAnnotations(ctx); err != nil {
		add("%v", err)
	} else if s.set.faults != "" {
		add("%s", s.set.faults)
	}
	if err := s.readSet(ctx); err != nil && !errors.Is(err, ErrUndeclared) {
		add("%v", err)
	}
	if checker, ok := s.set.Actuator.(actuators.Checker); ok {
		for _, problem := range checker.Check(ctx, s.doc) {
			add("%v", problem)
		}
	}
	shown, err := readShown(ctx, r.config.Targets, s.set.ID)
	if err != nil {
		add("%v", err)
	}
	if checker, ok := s.set.Consumers.(interface {
		Check(context.Context, *versions.Document, []Shown) []string
	}); ok {
		problems = append(problems, checker.Check(ctx, s.doc, shown)...)
	}
	if checker, ok := r.config.Targets.(interface {
		Check(context.Context, []Shown) []string
	}); ok {
		problems = append(problems, checker.Check(ctx, shown)...)
	}
	for _, id := range slices.Sorted(maps.Values(s.set.Adopt)) {
		lacks := listMissingRights(ctx, r.config.Conjur, id, "execute")
		problems = append(problems, lacks...)
		if len(s.doc.Versions) == 0 && lacks == nil && r.config.Conjur.Variable(ctx, id, "").Form == conjur.Missing {
			add("%q, which this set adopts, has no value; set it", id)
		}
	}
	problems = append(problems, r.listUnusable(ctx, s)...)
	values, err := s.set.publisher.renderValues(s.doc)
	wipeValues(values)
	if err != nil {
		add("%v", err)
	}
	if err := s.readClock(ctx); err == nil {
		if ahead := s.doc.FutureText(s.now); ahead != "" {
			add("%s", ahead)
		}
	}
	primary, ok := s.doc.Primary()
	if !ok {
		return problems
	}
	if !s.owned() {
		add("%s; this is %q", s.doc.OwnerText(), r.config.Owner)
	}
	if s.set.Actuator != nil {
		if err := s.set.Actuator.Verify(ctx, primary); err != nil {
			add("the primary %s cannot be used: %v", primary.ID, err)
		}
	}
	return problems
}

// listMissingRights returns the missing privileges on a variable.
func listMissingRights(ctx context.Context, client Conjur, id string, privileges ...string) (problems []string) {
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

// listUnusable returns the variables of a set that cannot serve their purpose because of
// their values. Another configuration may store a set in one of them.
func (r *Rotator) listUnusable(ctx context.Context, s *step) (problems []string) {
	problems, _ = s.set.publisher.findOccupied(ctx, s.doc) // rights are checked elsewhere
	if s.set.Generate.X509 == nil || s.set.Generate.X509.CA == "" {
		return problems
	}
	ca := s.set.Generate.X509.CA
	held, err := Set{Conjur: r.config.Conjur, ID: ca}.readNewest(ctx)
	if err == nil && held.Document == nil {
		if r.sets[ca] != nil { // it begins automatically
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

// Reminders returns, by set, facts that this process cannot see and an operator must
// know. The server's own rotator must be off while the policy requests it.
func (r *Rotator) Reminders(ctx context.Context) map[string][]string {
	all := map[string][]string{}
	for id, s := range r.sets {
		newest, _ := s.publisher.readAnnotatedNumbers(ctx) // Check reports the error
		for _, variable := range slices.Sorted(maps.Keys(newest)) {
			all[id] = append(all[id], fmt.Sprintf("disable the server's own rotator, if it is enabled: the policy annotates %q with %s, and Syncer cannot see a rotator before its first run", variable, conjur.RotatorAnnotation))
		}
	}
	return all
}

// listUnpublished returns what to do for each variable that the policy wants rotated but
// that no set publishes to. The key is the variable's id.
func (r *Rotator) listUnpublished(ctx context.Context) map[string][]string {
	if !r.config.FromPolicy {
		return nil
	}
	published := map[string]bool{}
	for _, s := range r.sets {
		for id := range s.configured.Publish {
			published[id] = true
		}
	}
	found := map[string][]string{}
	for offset := 0; ; offset += conjur.LongestPage {
		page, reading := r.config.Conjur.List(ctx, conjur.LongestPage, offset, "")
		if reading.Form != conjur.Given {
			found["rotation.fromPolicy"] = []string{fmt.Sprintf("cannot list the variables that the policy wants rotated: %v", reading.Err)}
			return found
		}
		for _, id := range page.Rotated {
			if !published[id] {
				found[id] = r.proposeSet(ctx, id)
			}
		}
		if len(page.IDs) < conjur.LongestPage {
			return found
		}
	}
}

// proposeSet returns what to do about a variable that no set publishes to.
func (r *Rotator) proposeSet(ctx context.Context, id string) []string {
	about, reading := r.config.Conjur.Resource(ctx, nil, id)
	if reading.Form != conjur.Given {
		return []string{fmt.Sprintf("the policy wants it rotated, but its annotations cannot be read: %v", reading.Err)}
	}
	if _, problems := parseAnnotations(about); len(problems) > 0 {
		return problems
	}
	in := strings.TrimSuffix(id, path.Base(id))
	return []string{fmt.Sprintf("the policy wants it rotated, but no set publishes to it; add to rotation.sets "+
		"{set: %[1]s-set, postgresql: {address: HOST:PORT/DATABASE, admin: %[2]sadmin, users: [USER_A, USER_B]}, publish: {%[1]s: password, %[2]susername: username}}, "+
		`and to the policy what "syncer rotate init" prints then`, id, in)}
}

// warnOfUnpublished warns of all variables that the policy wants rotated but that no set
// publishes to.
func (r *Rotator) warnOfUnpublished(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	for id, problems := range r.listUnpublished(ctx) {
		for _, problem := range problems {
			r.config.Log.Warn("A variable is not rotated, although the policy wants it", zap.String("variable", id), zap.String("reason", problem))
		}
	}
}
