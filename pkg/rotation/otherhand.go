package rotation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// Conjur's own rotator looks about once a second for annotated variables whose newest
// value has no expiry, or a past one. It changes each of them, in the database and in
// Conjur, and sets an expiry. Every write by anybody else clears the expiry. Therefore
// each write by Syncer would make that rotator change the value again.

// ownRotator is the problem of a published variable that has an expiry.
const ownRotator = "the server's own rotator has changed it; disable that rotator, then clear the variable's expiry: POST /secrets/ACCOUNT/variable/ID?expirations"

// otherHandError says why a variable that a set publishes or adopts does not belong to
// the set. Somebody else changes it, or controls rotation with it.
type otherHandError struct{ why string }

func (e *otherHandError) Error() string { return e.why }

// untouched returns the version numbers of published variables for which the policy
// requests the server's own rotator. The error is an *otherHandError if that rotator has
// changed one.
func (r *Rotator) untouched(ctx context.Context, s *rotated) (map[string]uint64, error) {
	newest := map[string]uint64{}
	for _, id := range slices.Sorted(maps.Keys(s.Publish)) {
		if s.Publish[id].Text == "" { // a set is not a password
			continue
		}
		about, reading := r.config.Conjur.Resource(ctx, nil, id)
		switch {
		case reading.Form != conjur.Given:
			return nil, fmt.Errorf("it is not known whether the server's own rotator changes %q: %w", id, reading.Err)
		case about.Expires:
			return nil, &otherHandError{fmt.Sprintf("%q: %s", id, ownRotator)}
		case about.Annotations[conjur.RotatorAnnotation] != "":
			newest[id] = about.Newest
		}
	}
	return newest, nil
}

// alone returns nil if nobody else changes the variables that a set publishes. A missing
// expiry is not sufficient proof: the server's own rotator sets it a moment after a
// write. Therefore an annotated variable must have been unchanged for a while.
func (r *Rotator) alone(ctx context.Context, s *rotated) error {
	before, err := r.untouched(ctx, s)
	if err != nil || len(before) == 0 {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(min(r.config.Calm, r.config.Timeout/3)):
	}
	after, err := r.untouched(ctx, s)
	for id, number := range after {
		if was, ok := before[id]; err == nil && ok && was != number {
			return &otherHandError{fmt.Sprintf("%q: somebody else has changed it just now; it is looked at again", id)}
		}
	}
	return err
}

// mayPromote returns nil if a primary may be published. Before the first primary,
// variables without a value get theirs. The server's own rotator never changes a variable
// without a value. If that rotator runs, it must change the login before a consumer has
// it.
func (r *Rotator) mayPromote(ctx context.Context, s *rotated, next *versions.Document) error {
	was, used := s.doc().Primary()
	is, _ := next.Primary()
	if was.ID == is.ID {
		return nil
	}
	newest, err := r.untouched(ctx, s)
	if err != nil || len(newest) == 0 {
		return err
	}
	if !used && slices.Contains(slices.Collect(maps.Values(newest)), 0) {
		s.doing = "publish"
		if err := r.vacant(ctx, s); err != nil {
			return err
		}
		values, err := s.publications(next)
		if err != nil {
			return err
		}
		for _, v := range values {
			if err := r.config.Conjur.Set(ctx, v.ID, v.Value); err != nil {
				return fmt.Errorf("%q is not published: %w", v.ID, err)
			}
		}
	}
	return r.alone(ctx, s)
}

// held returns the outcome for a set that another writer blocks, if err says so. Any
// other err is an error of the step.
func (r *Rotator) held(ctx context.Context, s *rotated, g gates, now time.Time, err error) (outcome, error) {
	var hand *otherHandError
	if !errors.As(err, &hand) {
		return outcome{}, err
	}
	s.hand = hand.why
	return r.wait(ctx, s, g, now, versions.Action{Verb: versions.Wait, Why: hand.why})
}

// Reminders returns, by set, facts that this process cannot see and an operator must
// know. The server's own rotator must be off while the policy requests it.
func (r *Rotator) Reminders(ctx context.Context) map[string][]string {
	all := map[string][]string{}
	for id, s := range r.sets {
		newest, _ := r.untouched(ctx, s) // Check reports the error
		for _, variable := range slices.Sorted(maps.Keys(newest)) {
			all[id] = append(all[id], fmt.Sprintf("disable the server's own rotator, if it is enabled: the policy annotates %q with %s, and Syncer cannot see a rotator before its first run", variable, conjur.RotatorAnnotation))
		}
	}
	return all
}
