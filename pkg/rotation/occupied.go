package rotation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// unusable returns the variables of a set that cannot serve their purpose because of
// their values. Another configuration may store a set in one of them.
func (s *step) unusable(ctx context.Context) (problems []string) {
	problems, _ = s.occupied(ctx) // rights are checked elsewhere
	if s.Generate.X509 == nil || s.Generate.X509.CA == "" {
		return problems
	}
	ca := s.Generate.X509.CA
	held, err := Set{Conjur: s.r.config.Conjur, ID: ca}.read(ctx)
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
