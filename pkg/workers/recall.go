package workers

import (
	"context"
	"slices"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// recall adds variables to a target with a wildcard again, if its content holds them but
// the list lacks them. A list does not prove that they are gone.
func (s *Syncer) recall(ctx context.Context, r *job) *job {
	t := r.Spec
	if t.Overrides != nil {
		return s.recallOverrides(ctx, r)
	}
	var ids []string
	var unknown []*targets.Target // the parts with unknown members
	for _, part := range t.Parts() {
		before := r.Status.Content[part.Group]
		if part.Expanded != nil && before == nil {
			unknown = append(unknown, part)
		}
		for id, in := range before { // a target that left the set for a while has lost them
			if in && part.Expanded != nil && !part.Expanded[id] {
				ids = append(ids, id)
			}
		}
	}
	if len(unknown) > 0 {
		ids = append(ids, s.held(ctx, r, unknown)...)
	}
	if len(ids) == 0 {
		return r
	}
	if recalled, ok := s.Targets.Recall(t.Key, ids...); ok {
		r.Spec = recalled
	}
	return r
}

// held lists variables that the content of the parts may hold. After a restart, only the
// content or the list remembered with it shows that they were ever listed.
func (s *Syncer) held(ctx context.Context, r *job, parts []*targets.Target) []string {
	t := r.Spec
	have, err := r.readDestination(ctx)
	if err != nil {
		return nil // the sync reports the error
	}
	r.see(have)
	defer secret.Wipe(have.Parts)
	ids := have.Members
	for _, part := range parts {
		name := part.Group
		if t.Secret == nil {
			name = sinks.WholeFile
		}
		if content, ok := have.Parts[name]; ok && readable(part) {
			ids = append(ids, unlisted(part, render.Aliases(part.Format, content.Bytes()))...)
		}
	}
	return slices.DeleteFunc(ids, func(id string) bool { return !variables.Askable(id) })
}

// readable reports whether the content of a part names its variables. The content of a
// template does not. The data keys of a Secret's map do not either.
func readable(part *targets.Target) bool {
	return part.Format != "" && part.Format != targets.FormatTemplate
}

// unlisted lists the aliases for which the part has no entry.
func unlisted(part *targets.Target, aliases []string) (ids []string) {
	known := make(map[string]bool, len(part.Entries))
	for _, e := range part.Entries {
		known[e.Alias] = true
	}
	return slices.DeleteFunc(aliases, func(id string) bool { return known[id] })
}

// lookOnce checks whether anything of a target exists, if no sync has proven or seen that
// yet. It looks again at a Secret with a faulty definition while it shows sets, because
// somebody else may remove them.
func (s *Syncer) lookOnce(ctx context.Context, j *job, held bool) {
	again := j.Spec.Secret != nil && !held && len(j.Status.Sets) > 0
	if (!j.Status.Proven.IsZero() || j.Status.Version != "") && !again {
		return
	}
	have, err := j.readDestination(ctx)
	if err != nil { // the sync that can go on reports it
		return
	}
	defer secret.Wipe(have.Parts)
	j.see(have)
}

// see records the state that the sink has found.
func (j *job) see(have sinks.State) {
	j.Status.See(have.Sight)
	j.Seen = have.Seen
	j.Status.TargetEmpty = len(have.Parts) == 0 && !have.Stale
	switch {
	case j.Spec.Secret != nil:
		j.Status.Sets = (&draft{}).shown(j, have, have.Parts)
	case len(j.Spec.Faults) > 0 && !j.Status.TargetEmpty: // its sets are not known otherwise
		j.Status.Sets = shownBefore(j, have)
	}
}

// Recognizer is a Sink that may know what Read would return, but for the values that differ
// from the wanted ones. The returned parts may share their bytes with these.
type Recognizer interface {
	Recognize(r records.Record, wanted map[string]secret.Value) (sinks.State, bool)
}

// findContent finds out the existing content of a target. It reads it, unless the sink
// recognizes it without a request.
func (s *Syncer) findContent(ctx context.Context, j *job, wanted map[string]secret.Value) (have sinks.State, err error) {
	if sink, ok := s.Sink.(Recognizer); ok {
		if have, known := sink.Recognize(j.Record, wanted); known && ctx.Err() == nil {
			j.see(have)
			return have, nil
		}
	}
	return s.readContent(ctx, j)
}

// readContent reads the existing content of a target.
func (s *Syncer) readContent(ctx context.Context, j *job) (have sinks.State, err error) {
	have, err = j.readDestination(ctx)
	if err == nil {
		err = ctx.Err() // the draft's input may be incomplete
	}
	if err != nil {
		return have, failed("reading", j.Spec, err)
	}
	j.see(have)
	return have, nil
}
