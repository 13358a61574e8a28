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
// Conjur, and sets an expiry. Every write by anybody else clears the expiry, so each
// write of ours would make that rotator change the value again.

// ownRotator is what is wrong with a published variable that has an expiry.
const ownRotator = "the server's own rotator has changed it; switch that off, then take back when it is to be changed again: POST /secrets/ACCOUNT/variable/ID?expirations"

// otherHandError says why a variable that a set publishes or adopts is not the set's:
// somebody else changes it, or rotates by it.
type otherHandError struct{ why string }

func (e *otherHandError) Error() string { return e.why }

// untouched returns the numbers of the newest values of the published variables that
// the policy has the server's own rotator change. The error is an *otherHandError if
// that rotator has changed one.
func (r *Rotator) untouched(ctx context.Context, s *rotated) (map[string]uint64, error) {
	newest := map[string]uint64{}
	for _, id := range slices.Sorted(maps.Keys(s.Publish)) {
		if s.Publish[id].Text == "" { // a set is no password
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

// alone returns nil if nobody else changes what a set publishes. A missing expiry alone
// is no proof: the server's own rotator sets it a moment after a write. So an annotated
// variable must have stayed as it is for a while.
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

// mayPromote returns nil if a primary may be published. Before the first one, variables
// without a value get theirs: the server's own rotator changes no variable that never had
// one, and if it runs it must change that login before a consumer has it.
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

// held is what becomes of a set that somebody else's hand holds, if err says so; any other
// error is one of the step.
func (r *Rotator) held(ctx context.Context, s *rotated, g gates, now time.Time, err error) (outcome, error) {
	var hand *otherHandError
	if !errors.As(err, &hand) {
		return outcome{}, err
	}
	s.hand = hand.why
	return r.wait(ctx, s, g, now, versions.Action{Verb: versions.Wait, Why: hand.why})
}

// Reminders returns, by set, what this process cannot see and a person must know: the
// server's own rotator has to be off while the policy asks for it.
func (r *Rotator) Reminders(ctx context.Context) map[string][]string {
	all := map[string][]string{}
	for id, s := range r.sets {
		newest, _ := r.untouched(ctx, s) // Check reports the error
		for _, variable := range slices.Sorted(maps.Keys(newest)) {
			all[id] = append(all[id], fmt.Sprintf("make sure that the server's own rotator is off: the policy annotates %q with %s, and Syncer cannot see a rotator that has not run yet", variable, conjur.RotatorAnnotation))
		}
	}
	return all
}
