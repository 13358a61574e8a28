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
// Release takes variables that are proven to be gone out of a target that
// holds all variables, unless there is more to it than that; see targets.Set.
type Targets interface {
	Get(targets.Key) (*targets.Target, bool)
	Release(key targets.Key, ids ...string)
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

// Syncer makes targets right. All fields but List and Writing are needed. It
// may be used by several goroutines, one for each key at a time, and keeps no
// state but which variables are in the targets that hold all of them.
type Syncer struct {
	Targets   Targets
	Values    Values
	Templates Templates
	Sink      Sink
	Policy    Policy
	// List finds out which variables there are, and has Targets expand the
	// targets that hold all variables. It is called for those that are not
	// expanded yet; nil when there are none.
	List func(context.Context) error
	// Writing, when not nil, is called before a target is written or removed.
	Writing func(targets.Key)
	Log     *zap.Logger

	contents contents
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
// done. The variables of all keys travel together, but for those of targets
// for which the variables must be listed first. One target's failure does not
// touch the others.
func (s *Syncer) Sync(ctx context.Context, keys []targets.Key, report func(Result)) {
	var ts []*targets.Target
	var unlisted []targets.Key
	for _, key := range keys {
		switch t, ok := s.Targets.Get(key); {
		case !ok:
			report(Result{Key: key}) // forgotten; what it wrote is left
		case t.Wildcard():
			unlisted = append(unlisted, key)
		default:
			ts = append(ts, t)
		}
	}
	s.syncAll(ctx, ts, report)
	if len(unlisted) > 0 {
		s.syncAll(ctx, s.list(ctx, unlisted, report), report)
	}
}

func (s *Syncer) syncAll(ctx context.Context, ts []*targets.Target, report func(Result)) {
	answers := s.Values.Fetch(ctx, variables(ts))
	defer wipe(answers)
	for _, t := range ts {
		report(s.sync(ctx, t, answers))
	}
}

func (s *Syncer) sync(ctx context.Context, t *targets.Target, answers map[string]conjur.Answer) Result {
	result := Result{Key: t.Key}
	chosen := s.choose(t, answers)
	want, err := s.want(&chosen, answers)
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
	switch {
	case changes.Empty():
		s.settle(t, chosen, want)
		return result
	case want.Gone == nil && len(chosen.doubts) > 0 && len(have.Parts) > 0:
		result.Err = &UnknownError{Key: t.Key, Errs: chosen.doubts}
		return result
	}
	log := s.Log.With(zap.String("target", string(t.Key)), zap.String("path", t.File.Path))
	log.Info("Writing target", zap.Int("set", len(changes.Set)), zap.Int("remove", len(changes.Remove)))
	if s.Writing != nil {
		s.Writing(t.Key)
	}
	if err := s.Sink.Apply(ctx, t, changes); err != nil {
		s.contents.forget(t.Key)
		result.Err = fmt.Errorf("writing %s: %w", t.Key, err)
		return result
	}
	log.Info("Target written")
	s.settle(t, chosen, want)
	result.Wrote, result.Removed = true, want.Gone != nil
	return result
}

// want works out what the target should hold, from answers about all of its
// variables. Half a rotation is worse than none: one unknown value, and the
// target stays as it is.
func (s *Syncer) want(chosen *choice, answers map[string]conjur.Answer) (Want, error) {
	if chosen.err != nil {
		return Want{}, chosen.err
	}
	t := chosen.target
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
	result, err := renderWith(t, text, answers)
	if chosen.leaveOutUnfit(err) {
		result, err = renderWith(chosen.target, text, answers)
	}
	if err != nil {
		return Want{}, &RenderError{Key: t.Key, Err: err}
	}
	for _, warning := range result.Warnings {
		s.Log.Warn(warning, zap.String("target", string(t.Key)))
	}
	return Want{Parts: result.Parts, Mode: t.File.Mode}, nil
}

func renderWith(t *targets.Target, template string, answers map[string]conjur.Answer) (render.Result, error) {
	items := make([]render.Item, len(t.Entries))
	for i, e := range t.Entries {
		items[i] = render.Item{Alias: e.Alias, Value: answers[e.Variable].Value}
	}
	return render.Render(t, template, items)
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
