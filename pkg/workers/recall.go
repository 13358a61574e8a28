package workers

import (
	"context"
	"slices"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// recall brings the variables into a target with a wildcard that its content
// holds though the list lacks them: a list is no proof that they are gone.
func (s *Syncer) recall(ctx context.Context, r *job) *job {
	t := r.Spec
	if t.Overrides != nil {
		return s.recallOwn(ctx, r)
	}
	var ids []string
	var unknown []*targets.Target // the parts of which it is not known how they came about
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

// held lists variables that the content of the parts may hold. After a restart
// only the content says that they were ever listed, or what was remembered with
// it.
func (s *Syncer) held(ctx context.Context, r *job, parts []*targets.Target) []string {
	t := r.Spec
	have, err := r.read(ctx)
	if err != nil {
		return nil // as the sync will find out
	}
	r.see(have)
	defer wipeParts(have.Parts)
	ids := have.Members
	for _, part := range parts {
		name := part.Group
		if t.Secret == nil {
			name = sinks.WholeFile
		}
		if content, ok := have.Parts[name]; ok && readable(part) {
			ids = append(ids, strangers(part, render.Aliases(part.Format, content.Bytes()))...)
		}
	}
	return slices.DeleteFunc(ids, func(id string) bool { return !variables.Askable(id) })
}

// readable reports whether the content of a part names the variables in it. That
// of a template does not, nor do the data keys of a Secret's map.
func readable(part *targets.Target) bool {
	return part.Format != "" && part.Format != targets.FormatTemplate
}

// strangers lists those aliases that the part has no entry for.
func strangers(part *targets.Target, aliases []string) (ids []string) {
	known := make(map[string]bool, len(part.Entries))
	for _, e := range part.Entries {
		known[e.Alias] = true
	}
	return slices.DeleteFunc(aliases, func(id string) bool { return known[id] })
}

// lookOnce finds out whether there is anything of a target that no sync has
// proven or seen.
func (s *Syncer) lookOnce(ctx context.Context, j *job) {
	if !j.Status.Proven.IsZero() || j.Status.Version != "" {
		return
	}
	have, err := j.read(ctx)
	if err != nil { // which the sync that can go on reports
		return
	}
	defer wipeParts(have.Parts)
	j.see(have)
}

// see notes what the sink has found.
func (j *job) see(have sinks.State) {
	j.Status.See(have.Sight)
	j.Status.Bare = len(have.Parts) == 0 && !have.Stale
}
