package rotation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// publishedWith returns the values to publish with a step. A command is obeyed even while
// publishing is not allowed.
func (s *step) publishedWith(ctx context.Context, next *versions.Document) ([]conjur.NewValue, error) {
	promoted := promotes(s.doc(), next)
	if !s.changesPublished(promoted) {
		return nil, nil
	}
	var hold *holdError
	if err := s.checkVacant(ctx); errors.As(err, &hold) && !promoted && s.answersCommand(next) {
		s.unmended.Store(true)
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return s.publications(next)
}

// answersCommand reports whether a step obeys an operator's command.
func (s *step) answersCommand(next *versions.Document) bool {
	_, before := s.doc().Answer(s.control.ID)
	_, after := next.Answer(s.control.ID)
	return after && !before
}

// changesPublished reports whether a published value changes with a step.
func (s *step) changesPublished(promoted bool) bool {
	for _, p := range s.Publish {
		if promoted || p.Text == "" {
			return true
		}
	}
	return false
}

// publications returns the values to publish for a set, by id in ascending order.
func (s *step) publications(doc *versions.Document) (values []conjur.NewValue, err error) {
	for _, id := range slices.Sorted(maps.Keys(s.Publish)) {
		value, ok, err := s.Publish[id].Of(doc)
		if err != nil {
			return values, fmt.Errorf("%q cannot be published: %w", id, err)
		}
		if ok {
			values = append(values, conjur.NewValue{ID: id, Value: value})
		}
	}
	return values, nil
}

// wipe clears values that were written.
func wipe(values []conjur.NewValue) {
	for _, v := range values {
		v.Value.Wipe()
	}
}

// publish writes published values.
func publish(ctx context.Context, client Conjur, values []conjur.NewValue) error {
	for _, v := range values {
		if err := client.Set(ctx, v.ID, v.Value); err != nil {
			return fmt.Errorf("%q is not published: %w", v.ID, err)
		}
	}
	return nil
}

// mendBefore mends the published values before an action, if one may differ from the set.
// Nothing passes a publication that cannot be mended: readers of the variable still use the
// version that it has. Only a step that obeys a command without a promotion does, such as
// "pause".
func (s *step) mendBefore(ctx context.Context, action versions.Action) error {
	if s.held.Document == nil || !s.mine() || s.r.config.Paused || !s.unmended.Load() {
		return nil
	}
	if action.Verb == versions.Write && s.answersCommand(action.Doc) && !promotes(s.doc(), action.Doc) {
		return nil
	}
	s.doing = "publish"
	s.unmended.Store(false) // before the look, so that a change meanwhile counts
	err := s.mend(ctx)
	if err != nil {
		s.unmended.Store(true)
	}
	if hold, ok := errors.AsType[*holdError](err); ok {
		return &holdError{why: hold.why, until: hold.until, foreign: true}
	}
	return err
}

// promotes reports whether a step has another primary.
func promotes(doc, next *versions.Document) bool {
	was, _ := doc.Primary()
	is, _ := next.Primary()
	return was.ID != is.ID
}

// mend rewrites published values that differ from the set.
func (s *step) mend(ctx context.Context) error {
	values, err := s.outdated(ctx)
	defer wipe(values)
	if err != nil || len(values) == 0 {
		return err
	}
	if err := s.checkVacant(ctx); err != nil {
		return err
	}
	if err := s.checkAlone(ctx); err != nil {
		return err
	}
	return publish(ctx, s.r.config.Conjur, values)
}

// outdated returns the published values that differ from the set. The caller wipes them,
// even with an error.
func (s *step) outdated(ctx context.Context) (outdated []conjur.NewValue, err error) {
	values, err := s.publications(s.held.Document)
	if err != nil {
		return values, err
	}
	for i, v := range values {
		is, found, err := s.r.value(ctx, v.ID)
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
