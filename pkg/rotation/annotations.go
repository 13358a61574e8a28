package rotation

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// The annotations for Conjur's own rotators, besides conjur.RotatorAnnotation.
const (
	ttlAnnotation    = "rotation/ttl"
	lengthAnnotation = "rotation/postgresql/password/length"

	postgresqlRotator = "postgresql/password"
)

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

// wanted is the settings that annotations request for a set. The zero wanted requests
// nothing.
type wanted struct {
	every  time.Duration
	length int // of a password
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

// and returns settings that satisfy both: the shorter interval and the longer password.
func (w wanted) and(other wanted) wanted {
	if w.every == 0 || other.every > 0 && other.every < w.every {
		w.every = other.every
	}
	w.length = max(w.length, other.length)
	return w
}

// fill sets the values of the set that its definition leaves open.
func (w wanted) fill(set *Plan) {
	if w.every > 0 && set.Schedule.General {
		set.Schedule.Every = w.every
	}
	if p := set.Generate.Password; w.length > 0 && p != nil && p.Length == 0 {
		long := *p
		long.Length = w.length
		set.Generate.Password = &long
	}
}

// parseAnnotations reads the annotations for Conjur's own rotators and returns all faults
// in them. Without the annotation for a rotator, the others have no meaning.
func parseAnnotations(about conjur.Resource) (w wanted, problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	switch rotator := about.Annotations[conjur.RotatorAnnotation]; rotator {
	case "":
		return w, nil
	case postgresqlRotator:
	default:
		add("%s is %.100q, which Syncer does not know; it knows %q", conjur.RotatorAnnotation, rotator, postgresqlRotator)
	}
	if about.Expires {
		add(ownRotator)
	}
	if ttl, ok := about.Annotations[ttlAnnotation]; ok {
		if w.every, ok = parseDuration(ttl); !ok {
			add("%s is %.100q; write an ISO 8601 duration from a second to a hundred years, such as P30D or PT12H", ttlAnnotation, ttl)
		}
	}
	if length, ok := about.Annotations[lengthAnnotation]; ok {
		n, err := strconv.Atoi(length)
		if err != nil || n == 0 || (generate.Config{Password: &generate.Password{Length: n}}).Check() != nil {
			add("%s is %.100q; write a number from 16 to 256", lengthAnnotation, length)
		}
		w.length = n
	}
	return w, problems
}

var durationForm = regexp.MustCompile(`^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$`)

// parseDuration reads an ISO 8601 duration. A year has 365 days, a month 30.
func parseDuration(text string) (total time.Duration, ok bool) {
	const day = 24 * time.Hour
	const longest = 100 * 365 * day
	groups := durationForm.FindStringSubmatch(text)
	if groups == nil {
		return 0, false
	}
	for i, unit := range []time.Duration{365 * day, 30 * day, 7 * day, day, time.Hour, time.Minute, time.Second} {
		if groups[i+1] == "" {
			continue
		}
		n, err := strconv.ParseUint(groups[i+1], 10, 64)
		if err != nil || n > uint64(longest/unit) {
			return 0, false
		}
		if total += time.Duration(n) * unit; total > longest {
			return 0, false
		}
	}
	return total, total >= time.Second
}

// unpublished returns what to do for each variable that the policy wants rotated but that
// no set publishes to. The key is the variable's id.
func (r *Rotator) unpublished(ctx context.Context) map[string][]string {
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
				found[id] = r.proposal(ctx, id)
			}
		}
		if len(page.IDs) < conjur.LongestPage {
			return found
		}
	}
}

// proposal returns what to do about a variable that no set publishes to.
func (r *Rotator) proposal(ctx context.Context, id string) []string {
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
	for id, problems := range r.unpublished(ctx) {
		for _, problem := range problems {
			r.config.Log.Warn("A variable is not rotated, although the policy wants it", zap.String("variable", id), zap.String("reason", problem))
		}
	}
}

// Conjur's own rotator looks about once a second for annotated variables whose newest
// value has no expiry, or a past one. It changes each of them, in the database and in
// Conjur, and sets an expiry. Every write by anybody else clears the expiry. Therefore
// each write by Syncer would make that rotator change the value again.

// ownRotator is the problem of a published variable that has an expiry.
const ownRotator = "the server's own rotator has changed it; disable that rotator, then clear the variable's expiry: POST /secrets/ACCOUNT/variable/ID?expirations"

// annotatedNumbers returns the version numbers of published variables for which the
// policy requests the server's own rotator. The error is a *holdError if that rotator has
// changed one.
func (s *step) annotatedNumbers(ctx context.Context) (map[string]uint64, error) {
	newest := map[string]uint64{}
	for _, id := range slices.Sorted(maps.Keys(s.Publish)) {
		if s.Publish[id].Text == "" { // a set is not a password
			continue
		}
		about, reading := s.r.config.Conjur.Resource(ctx, nil, id)
		switch {
		case reading.Form != conjur.Given:
			return nil, fmt.Errorf("cannot check whether the server's own rotator changes %q: %w", id, reading.Err)
		case about.Expires:
			return nil, &holdError{why: fmt.Sprintf("%q: %s", id, ownRotator), foreign: true}
		case about.Annotations[conjur.RotatorAnnotation] != "":
			newest[id] = about.Newest
		}
	}
	return newest, nil
}

// checkAlone returns nil if nobody else changes the variables that a set publishes. A
// missing expiry is not sufficient proof: the server's own rotator sets it a moment after
// a write. Therefore an annotated variable must have been unchanged for a while.
func (s *step) checkAlone(ctx context.Context) error {
	before, err := s.annotatedNumbers(ctx)
	if err != nil || len(before) == 0 {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(min(s.r.config.Calm, s.r.config.Timeout/3)):
	}
	after, err := s.annotatedNumbers(ctx)
	for id, number := range after {
		if was, ok := before[id]; err == nil && ok && was != number {
			return &holdError{why: fmt.Sprintf("%q: somebody else changed it just now; Syncer checks it again", id), foreign: true}
		}
	}
	return err
}

// checkPromote returns nil if a primary may be published. Before the first primary,
// variables without a value get theirs. The server's own rotator never changes a variable
// without a value. If that rotator runs, it must change the login before a consumer has
// it.
func (s *step) checkPromote(ctx context.Context, next *versions.Document) error {
	was, used := s.doc().Primary()
	is, _ := next.Primary()
	if was.ID == is.ID {
		return nil
	}
	newest, err := s.annotatedNumbers(ctx)
	if err != nil || len(newest) == 0 {
		return err
	}
	if !used && slices.Contains(slices.Collect(maps.Values(newest)), 0) {
		s.doing = "publish"
		if err := s.checkVacant(ctx); err != nil {
			return err
		}
		values, err := s.publications(next)
		defer wipe(values)
		if err != nil {
			return err
		}
		if err := publish(ctx, s.r.config.Conjur, values); err != nil {
			return err
		}
	}
	return s.checkAlone(ctx)
}

// Reminders returns, by set, facts that this process cannot see and an operator must
// know. The server's own rotator must be off while the policy requests it.
func (r *Rotator) Reminders(ctx context.Context) map[string][]string {
	all := map[string][]string{}
	for id, s := range r.sets {
		newest, _ := r.begin(s).annotatedNumbers(ctx) // Check reports the error
		for _, variable := range slices.Sorted(maps.Keys(newest)) {
			all[id] = append(all[id], fmt.Sprintf("disable the server's own rotator, if it is enabled: the policy annotates %q with %s, and Syncer cannot see a rotator before its first run", variable, conjur.RotatorAnnotation))
		}
	}
	return all
}
