package tool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/internal/joined"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// offline makes targets with values from a file, as the process does with Conjur's
// values.
type offline struct {
	*Tool
	values    map[string]secret.Value
	templates *templates
}

// offline reads the values.
func (t *Tool) offline(templates *templates) (*offline, error) {
	if t.Values == "" {
		return nil, errors.New("name a file of values with --values")
	}
	texts, err := ReadValues(t.Values, t.In)
	values := make(map[string]secret.Value, len(texts))
	for id, text := range texts {
		values[id] = secret.New(text)
	}
	return &offline{t, values, templates}, err
}

// made is the result of a sync that was not written.
type made struct {
	target  *targets.Target // without the omitted parts
	have    sinks.State
	changes sinks.Changes
	missing bool // the Secret does not exist
}

// expand replaces entries for all variables, and entries with a node-specific
// alternative, by the variables that have a value.
func (o *offline) expand(ts []*targets.Target) []*targets.Target {
	expanded := slices.Clone(ts)
	for i, t := range ts {
		if t.NeedsList() {
			expanded[i] = t.Expand(slices.Collect(maps.Keys(o.values)))
		}
	}
	return expanded
}

// sync makes all of the targets, whose entries are expanded. If some cannot be made, it
// returns none, and an error for each of these. It writes warnings. It reads the existing
// content from the sink and does not write to it. Without a sink, no content exists.
func (o *offline) sync(ctx context.Context, ts []*targets.Target, sink workers.Sink) ([]made, error) {
	if err := o.checkValues(ts); err != nil {
		return nil, err
	}
	all := make([]made, len(ts))
	var errs []error
	for i, t := range ts {
		r := &rehearsal{offline: o, made: made{target: t}, sink: sink}
		errs = append(errs, r.run(ctx))
		all[i] = r.made
	}
	return all, errors.Join(errs...)
}

// checkValues returns all variables of the targets that have no value.
func (o *offline) checkValues(ts []*targets.Target) error {
	file := inputName(o.Values)
	var missing []string
	var errs []error
	seen := map[string]bool{}
	for _, t := range ts {
		for _, part := range t.Parts() {
			if part.Expanded != nil && len(part.Entries) == 0 {
				where := string(t.Key)
				if part != t {
					where += ": " + part.Group
				}
				errs = append(errs, fmt.Errorf("%s has no variable that the * of %s selects", file, where))
			}
		}
		for _, id := range t.Variables() {
			if _, ok := o.values[id]; !ok && !seen[id] {
				missing, seen[id] = append(missing, id+alsoMissing(t, id)), true
			}
		}
	}
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("%s has no value for %s", file, strings.Join(missing, ", ")))
	}
	return errors.Join(errs...)
}

// rehearsal is a sync of one target that changes nothing. It implements everything that
// the Syncer needs.
type rehearsal struct {
	*offline
	made
	sink workers.Sink // nil: there is no existing content
}

// run makes the target.
func (r *rehearsal) run(ctx context.Context) (err error) {
	var lane records.Lane
	lane.Put(r.target)
	syncer := workers.Syncer{Targets: &lane, Values: r, Templates: r, Sink: r, Log: zap.NewNop()}
	syncer.Sync(ctx, ctx, []targets.Key{r.target.Key}, func(result workers.Result) {
		left := map[string]bool{} // omitted from a file
		for _, w := range result.Warnings {
			r.line("warning", fmt.Errorf("%s: %s", r.at(w.Part), w.Text))
			left[w.Left] = w.Part == ""
		}
		reduced := *r.target
		reduced.Entries = slices.DeleteFunc(slices.Clone(reduced.Entries), func(e targets.Entry) bool {
			return reduced.Expanded[e.Variable] && left[e.Variable]
		})
		r.target = &reduced
		err = r.fault(result.Err)
	})
	return err
}

// at names a part of the target.
func (r *rehearsal) at(part string) string {
	if part == "" {
		return string(r.target.Key)
	}
	return string(r.target.Key) + ": " + part
}

// fault translates a sync's error for a tool, which has no last state to keep.
func (r *rehearsal) fault(err error) error {
	var missing *sinks.MissingError
	if r.missing = errors.As(err, &missing); r.missing {
		return nil
	}
	var errs []error
	for _, e := range joined.Errors(err) {
		var own *ownError
		var rendering *workers.RenderError
		switch {
		case errors.As(e, &own):
			errs = append(errs, own.err)
		case errors.As(e, &rendering):
			errs = append(errs, about(r.at(rendering.Part), rendering.Err))
		default:
			errs = append(errs, about(r.at(""), e))
		}
	}
	return errors.Join(errs...)
}

// ownError is an error of a rehearsal that needs no further translation.
type ownError struct{ err error }

func (e *ownError) Error() string { return e.err.Error() }

// Fetch implements workers.Values. The caller wipes the result after use.
func (r *rehearsal) Fetch(_ context.Context, ids []string, _ map[string]variables.Answer) map[string]variables.Answer {
	answers := make(map[string]variables.Answer, len(ids))
	for _, id := range ids {
		answers[id] = variables.Answer{Verdict: variables.Found, Value: secret.New(slices.Clone(r.values[id].Bytes()))}
	}
	return answers
}

// Text implements workers.Templates.
func (r *rehearsal) Text(ctx context.Context, t *targets.Target) (string, error) {
	text, err := r.templates.Text(ctx, t)
	switch {
	case err == nil:
		return text, nil
	case t.Key == r.target.Key:
		return "", &ownError{fmt.Errorf("%s: the template cannot be read: %w", t.Key, err)}
	}
	return "", &ownError{fmt.Errorf("%s: %w", r.at(t.Group), err)}
}

// Read implements workers.Sink.
func (r *rehearsal) Read(ctx context.Context, record records.Record) (sinks.State, error) {
	if r.sink == nil {
		return sinks.State{}, nil
	}
	state, err := r.sink.Read(ctx, record)
	var missing *sinks.MissingError
	if err != nil && !errors.As(err, &missing) {
		return state, &ownError{err}
	}
	r.have = state
	r.have.Parts = cloned(state.Parts)
	return state, err
}

// Apply implements workers.Sink. It records the content that would be written, without
// the data that only a continuing process needs.
func (r *rehearsal) Apply(_ context.Context, _ records.Record, changes sinks.Changes) (records.Sight, error) {
	r.changes = changes
	r.changes.Parts, r.changes.Members = cloned(changes.Parts), nil
	return records.Sight{}, nil
}

func cloned(parts map[string]secret.Value) map[string]secret.Value {
	clones := make(map[string]secret.Value, len(parts))
	for name, part := range parts {
		clones[name] = secret.New(slices.Clone(part.Bytes()))
	}
	return clones
}
