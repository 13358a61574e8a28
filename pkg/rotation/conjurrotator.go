package rotation

import (
	"context"
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
