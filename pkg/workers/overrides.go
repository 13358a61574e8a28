package workers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// An entry may have two variables: a node-specific one, which wins if it exists, and the
// general one. The list says when the node-specific variable exists. Only the variable
// itself says that it is gone. A variable that the list lacks is requested as long as the
// content may hold it.

// switchVariables switches a target between its general and its node-specific variables,
// depending on the answers. If a node-specific variable is gone, the target reads the
// general one. Once in a sync, the target may switch back. The error means that the wanted
// content of the target is no longer known.
//
// A mere suspicion is enough if the content is known to hold no node-specific value, for
// example because nothing exists. Otherwise, an unknown answer changes nothing.
func (s *Syncer) switchVariables(j *job, answers map[string]variables.Answer) (switched bool, err error) {
	lost, found, watched := map[string]error{}, []string{}, sets.New(j.Spec.Watched...)
	for own := range j.Spec.Overrides {
		switch a := answers[own]; {
		case j.Spec.Uses(own):
			if s.isReplaced(j, own, a) {
				lost[own] = a.Err
			}
		case !j.switched && a.Verdict == variables.Found && watched.Has(own):
			found = append(found, own)
		}
	}
	if len(lost)+len(found) == 0 {
		return false, nil
	}
	ids := slices.Sorted(maps.Keys(lost))
	for _, own := range ids {
		s.Log.Warn("Using the general variable instead of the node-specific one", zap.String("target", string(j.Spec.Key)),
			zap.String("variable", j.Spec.Overrides[own]), zap.NamedError("why", lost[own]))
	}
	s.Targets.Recall(j.Spec.Key, found...)
	t, ok := s.Targets.FallBack(j.Spec.Key, ids...)
	if !ok || t.NeedsList() || slices.ContainsFunc(ids, t.Uses) {
		return false, &UnknownError{Key: j.Spec.Key, Errs: []error{errNotListed}}
	}
	j.Spec, j.switched = t, true
	return true, nil
}

// isReplaced reports whether the general variable replaces a node-specific one.
func (s *Syncer) isReplaced(j *job, own string, a variables.Answer) bool {
	if a.Verdict == variables.Gone {
		return true
	}
	before := j.Status.Content[j.Spec.Group]
	var suspect *variables.SuspectError
	return before != nil && !before[own] && errors.As(a.Err, &suspect)
}

// recallOverrides adds node-specific variables to a target again, if the list lacks them but
// the target's content may hold them.
func (s *Syncer) recallOverrides(ctx context.Context, j *job) *job {
	t := j.Spec
	before := j.Status.Content[t.Group]
	if before == nil {
		have, err := j.readDestination(ctx)
		if err != nil {
			return j // the sync reports the error
		}
		secret.Wipe(have.Parts)
		j.see(have)
		before = map[string]bool{}
		for _, id := range have.Members {
			before[id] = len(have.Parts) > 0
		}
		j.Status.SetContent(t.Group, before)
	}
	var ids []string
	for own := range t.Overrides {
		if before[own] && !t.Uses(own) {
			ids = append(ids, own)
		}
	}
	if len(ids) == 0 {
		return j
	}
	if recalled, ok := s.Targets.Recall(t.Key, ids...); ok {
		j.Spec = recalled
	}
	return j
}

// overridesOf returns the node-specific variables that the target reads; nil if it cannot
// have any.
func overridesOf(t *targets.Target) map[string]bool {
	if t.Overrides == nil {
		return nil
	}
	in := make(map[string]bool, len(t.Overrides))
	for own := range t.Overrides {
		in[own] = t.Uses(own)
	}
	return in
}

// bothNamed returns answers whose "not found" errors name both the general and the
// node-specific variable, if neither exists.
func bothNamed(t *targets.Target, answers map[string]variables.Answer) map[string]variables.Answer {
	cloned := false
	for own, general := range t.Overrides {
		a, read := answers[general]
		var suspect *variables.SuspectError
		if !read || t.Uses(own) || a.Verdict != variables.Gone && !errors.As(a.Err, &suspect) {
			continue
		}
		if !cloned {
			answers, cloned = maps.Clone(answers), true
		}
		a.Err = fmt.Errorf("%w; the node-specific variable %q does not exist either: set one of the two", a.Err, own)
		answers[general] = a
	}
	return answers
}
