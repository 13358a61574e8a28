package workers

import (
	"context"
	"slices"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// recall brings the variables into a target with a wildcard that its content
// holds though the list lacks them, when it is not known how the content came
// about: a list is no proof that they are gone, and after a restart only the
// content tells that they were ever listed. A content that cannot be read, as
// that of a template, tells nothing.
func (s *Syncer) recall(ctx context.Context, t *targets.Target) *targets.Target {
	unknown := func(part *targets.Target) bool {
		return part.Expanded != nil && s.contents.of(t.Key, part.Group) == nil
	}
	if !slices.ContainsFunc(t.Parts(), unknown) {
		return t
	}
	have, err := s.Sink.Read(ctx, t)
	if err != nil {
		return t // as the sync will find out
	}
	defer wipeParts(have.Parts)
	var ids []string
	for _, part := range t.Parts() {
		name := part.Group
		if t.Secret == nil {
			name = sinks.WholeFile
		}
		if content, ok := have.Parts[name]; ok && unknown(part) && part.Format != "" {
			ids = append(ids, strangers(part, render.Aliases(part.Format, content.Bytes()))...)
		}
	}
	if len(ids) == 0 {
		return t
	}
	if recalled, ok := s.Targets.Recall(t.Key, ids...); ok {
		return recalled
	}
	return t
}

// strangers gives those aliases that may be variables which a wildcard has
// brought in, and that the part has no entry for.
func strangers(part *targets.Target, aliases []string) (ids []string) {
	known := make(map[string]bool, len(part.Entries))
	for _, e := range part.Entries {
		known[e.Alias] = true
	}
	return slices.DeleteFunc(aliases, func(id string) bool { return known[id] || !conjur.Askable(id) })
}
