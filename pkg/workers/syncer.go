// Package workers makes targets right, one key at a time: it fetches the
// values, renders, compares with what is there, and applies the difference.
package workers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// Targets finds the target of a key; false when it is no longer kept in sync.
type Targets interface {
	Get(targets.Key) (*targets.Target, bool)
}

// Values fetches variables. The answer holds every id asked for; its values
// belong to the caller.
type Values interface {
	Fetch(ctx context.Context, ids []string) map[string]conjur.Answer
}

// Templates gives the text of a target's template; "" for a target without.
type Templates interface {
	Text(*targets.Target) (string, error)
}

// Sink is where a target lands.
type Sink interface {
	Read(context.Context, *targets.Target) (sinks.State, error)
	Apply(context.Context, *targets.Target, sinks.Changes) error
}

// Syncer makes targets right. All fields but Writing are needed; it keeps no
// state of its own and may be used by several goroutines.
type Syncer struct {
	Targets   Targets
	Values    Values
	Templates Templates
	Sink      Sink
	Policy    Policy
	// Writing, when not nil, is called before a target is written or removed.
	Writing func(targets.Key)
	Log     *zap.Logger
}

// Result is what a sync did to one key.
type Result struct {
	Key targets.Key
	// Wrote: the target's content or mode was changed, or removed.
	Wrote bool
	// Removed: something was removed because a variable of it is gone.
	Removed bool
	// Err is why the target is not as it should be: *UnknownError,
	// *RevokedError, *RenderError, or an error of the template or the sink.
	// A target can be both removed from and in error.
	Err error
}

// Sync makes the targets of the keys right and reports each as soon as it is
// done. The variables of all keys travel together. One target's failure does
// not touch the others.
func (s *Syncer) Sync(ctx context.Context, keys []targets.Key, report func(Result)) {
	var ts []*targets.Target
	for _, key := range keys {
		if t, ok := s.Targets.Get(key); ok {
			ts = append(ts, t)
		} else {
			report(Result{Key: key}) // forgotten; what it wrote is left
		}
	}
	answers := s.Values.Fetch(ctx, variables(ts))
	defer wipe(answers)
	for _, t := range ts {
		report(s.sync(ctx, t, answers))
	}
}

func (s *Syncer) sync(ctx context.Context, t *targets.Target, answers map[string]conjur.Answer) Result {
	result := Result{Key: t.Key}
	want, err := s.want(t, answers)
	if err != nil {
		result.Err = err
		return result
	}
	defer wipeParts(want.Parts)
	if want.Gone != nil {
		result.Err = want.Gone
	}

	have, err := s.Sink.Read(ctx, t)
	if err != nil {
		result.Err = fmt.Errorf("reading %s: %w", t.Key, err)
		return result
	}
	defer wipeParts(have.Parts)

	changes := Plan(want, have, s.Policy)
	if changes.Empty() {
		return result
	}
	log := s.Log.With(zap.String("target", string(t.Key)), zap.String("path", t.File.Path))
	log.Info("Writing target", zap.Int("set", len(changes.Set)), zap.Int("remove", len(changes.Remove)))
	if s.Writing != nil {
		s.Writing(t.Key)
	}
	if err := s.Sink.Apply(ctx, t, changes); err != nil {
		result.Err = fmt.Errorf("writing %s: %w", t.Key, err)
		return result
	}
	log.Info("Target written")
	result.Wrote, result.Removed = true, want.Gone != nil
	return result
}

// want works out what the target should hold, from answers about all of its
// variables. Half a rotation is worse than none: one unknown value, and the
// target stays as it is.
func (s *Syncer) want(t *targets.Target, answers map[string]conjur.Answer) (Want, error) {
	if gone := goneOf(t, answers); gone != nil {
		gone.Kept = !s.Policy.RemoveRevoked
		return Want{Gone: gone}, nil
	}
	if unknown := unknownOf(t, answers); unknown != nil {
		return Want{}, unknown
	}
	s.Log.Info("Rendering target", zap.String("target", string(t.Key)), zap.String("format", string(t.Format)))
	text, err := s.Templates.Text(t)
	if err != nil {
		return Want{}, fmt.Errorf("reading the template of %s: %w", t.Key, err)
	}
	items := make([]render.Item, len(t.Entries))
	for i, e := range t.Entries {
		items[i] = render.Item{Alias: e.Alias, Value: answers[e.Variable].Value}
	}
	result, err := render.Render(t, text, items)
	if err != nil {
		return Want{}, &RenderError{Key: t.Key, Err: err}
	}
	for _, warning := range result.Warnings {
		s.Log.Warn(warning, zap.String("target", string(t.Key)))
	}
	return Want{Parts: result.Parts, Mode: t.File.Mode}, nil
}

func variables(ts []*targets.Target) []string {
	ids := map[string]bool{}
	for _, t := range ts {
		for _, id := range t.Variables() {
			ids[id] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

func wipe(answers map[string]conjur.Answer) {
	for _, a := range answers {
		a.Value.Wipe()
	}
}

func wipeParts(parts map[string]secret.Value) {
	for _, v := range parts {
		v.Wipe()
	}
}
