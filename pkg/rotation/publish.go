package rotation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// publisher publishes the values of a set to other variables, and adopts values from
// them. It overwrites nothing that belongs to somebody else.
type publisher struct {
	conjur  Client
	publish map[string]render.Published // by the variable's id
	adopt   map[string]string           // the variable's id, by the part that it becomes
	calm    time.Duration               // for how long nobody else may change a variable
}

// renderValues returns the values to publish for a set, by id in ascending order.
func (p publisher) renderValues(doc *versions.Document) (values []conjur.NewValue, err error) {
	for _, id := range slices.Sorted(maps.Keys(p.publish)) {
		value, ok, err := p.publish[id].Of(doc)
		if err != nil {
			return values, fmt.Errorf("%q cannot be published: %w", id, err)
		}
		if ok {
			values = append(values, conjur.NewValue{ID: id, Value: value})
		}
	}
	return values, nil
}

// wipeValues clears values that were written.
func wipeValues(values []conjur.NewValue) {
	for _, v := range values {
		v.Value.Wipe()
	}
}

// mendValues rewrites published values that differ from the set.
func (p publisher) mendValues(ctx context.Context, doc *versions.Document) error {
	values, err := p.findOutdated(ctx, doc)
	defer wipeValues(values)
	if err != nil || len(values) == 0 {
		return err
	}
	if err := p.checkFree(ctx, doc); err != nil {
		return err
	}
	return writeValues(ctx, p.conjur, values)
}

// findOutdated returns the published values that differ from the set. The caller wipes
// them, even with an error.
func (p publisher) findOutdated(ctx context.Context, doc *versions.Document) (outdated []conjur.NewValue, err error) {
	values, err := p.renderValues(doc)
	if err != nil {
		return values, err
	}
	for i, v := range values {
		is, found, err := p.readValue(ctx, v.ID)
		same := found && is.Equal(v.Value)
		is.Wipe()
		switch {
		case err != nil:
			return append(outdated, values[i:]...), err
		case same:
			v.Value.Wipe()
		default:
			outdated = append(outdated, v)
		}
	}
	return outdated, nil
}

// checkFree returns nil if the variables of a set may be written.
func (p publisher) checkFree(ctx context.Context, doc *versions.Document) error {
	if err := p.checkVacant(ctx, doc); err != nil {
		return err
	}
	return p.checkAlone(ctx)
}

// checkVacant returns nil if publishing and adopting overwrite and copy no variable that
// controls rotation. Otherwise the error is a *holdError.
func (p publisher) checkVacant(ctx context.Context, doc *versions.Document) error {
	problems, err := p.findOccupied(ctx, doc)
	if len(problems) > 0 {
		return &holdError{why: strings.Join(problems, "; "), foreign: true}
	}
	return err
}

// findOccupied returns the variables to publish to or to adopt that hold a set or its
// commands. The error names those that cannot be read.
func (p publisher) findOccupied(ctx context.Context, doc *versions.Document) (problems []string, err error) {
	look := func(id string, view bool, advice string) {
		what, unknown := p.describeData(ctx, id, view)
		if what != "" {
			problems = append(problems, fmt.Sprintf("%q holds %s%s", id, what, advice))
		}
		err = errors.Join(err, unknown)
	}
	for _, id := range slices.Sorted(maps.Keys(p.publish)) {
		look(id, p.publish[id].Text == "", ", which publishing would replace; publish to another variable")
	}
	if len(doc.Versions) > 0 { // the existing value was adopted
		return problems, err
	}
	for _, id := range slices.Sorted(maps.Values(p.adopt)) {
		look(id, false, "; adopt another variable")
	}
	return problems, err
}

// describeData names the rotation data in a variable; "" for any other value. With view,
// the variable may hold a published view of a set, which has no identity.
func (p publisher) describeData(ctx context.Context, id string, view bool) (string, error) {
	const commands = "the commands of a set"
	value, found, err := p.readValue(ctx, id)
	defer value.Wipe()
	set, steers := versions.ControlledBy(id)
	if c, err := parseControl(value.Bytes()); found && err == nil && (steers || c.ID != "") {
		return commands, nil
	}
	if steers && err == nil { // it may have no value yet, or a damaged one
		steered, _, _ := p.readValue(ctx, set) // this identity may lack the right to read the set
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

// readValue returns the present value of a variable; false if it has no value.
func (p publisher) readValue(ctx context.Context, id string) (value secret.Value, found bool, err error) {
	values := p.conjur.Variable(ctx, id, "")
	if value, found = values.Found[id]; !found && values.Form != conjur.Missing {
		err = fmt.Errorf("what %q holds is not known: %w", id, errors.Join(values.Err, values.Bad[id]))
	}
	return value, found, err
}

// readAnnotatedNumbers returns the version numbers of published variables for which the
// policy requests the server's own rotator. The error is a *holdError if that rotator has
// changed one.
func (p publisher) readAnnotatedNumbers(ctx context.Context) (map[string]uint64, error) {
	newest := map[string]uint64{}
	for _, id := range slices.Sorted(maps.Keys(p.publish)) {
		if p.publish[id].Text == "" { // a set is not a password
			continue
		}
		about, reading := p.conjur.Resource(ctx, nil, id)
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
func (p publisher) checkAlone(ctx context.Context) error {
	before, err := p.readAnnotatedNumbers(ctx)
	if err != nil || len(before) == 0 {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(p.calm):
	}
	after, err := p.readAnnotatedNumbers(ctx)
	for id, number := range after {
		if was, ok := before[id]; err == nil && ok && was != number {
			return &holdError{why: fmt.Sprintf("%q: somebody else changed it just now; Syncer checks it again", id), foreign: true}
		}
	}
	return err
}
