package workers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/targets"
)

// All values of a target should date from the same moment: a new user with an old
// password is worse than both old. The values of one request do. But a batch that was
// refused or was too long is fetched in pieces, and a value may change between two
// pieces. Therefore Syncer reads values from separate requests a second time. They
// existed at one moment if the second reading gets them in one request, or equals the
// first.

// fetch reads the variables of targets. It returns a function that gives the answers for
// each target, and a function that wipes them.
func (s *Syncer) fetch(ctx context.Context, rs []*job) (of func(*targets.Target) map[string]variables.Answer, done func()) {
	for _, r := range rs {
		defer r.span.Step("fetch")()
	}
	first := s.Values.Fetch(ctx, variablesOf(rs), nil)
	var again []string
	for _, r := range rs {
		if ids := named(r.Spec); apart(ids, first) {
			again = append(again, found(ids, first)...)
		}
	}
	if len(again) == 0 {
		return func(t *targets.Target) map[string]variables.Answer { return forTenant(t, first) }, func() { variables.Wipe(first) }
	}
	slices.Sort(again)
	second := s.Values.Fetch(ctx, slices.Compact(again), first)
	return func(t *targets.Target) map[string]variables.Answer { return forTenant(t, together(t, first, second)) },
		func() { variables.Wipe(first); variables.Wipe(second) }
}

// forTenant returns the answers for the tenant of a target.
func forTenant(t *targets.Target, answers map[string]variables.Answer) map[string]variables.Answer {
	var own map[string]variables.Answer
	for _, id := range slices.Concat(t.Variables(), t.Watched) {
		a := answers[id].For(t.Key.Namespace())
		if a.Verdict == answers[id].Verdict {
			continue
		}
		if own == nil {
			own = maps.Clone(answers)
		}
		own[id] = a
	}
	if own == nil {
		return answers
	}
	return own
}

// apart reports whether the values of variables come from several requests. This does not
// matter if one of them is unknown, because its target is not written.
func apart(ids []string, answers map[string]variables.Answer) bool {
	request, several := -1, false
	for _, id := range ids {
		a := answers[id]
		switch a.Verdict {
		case variables.Unknown:
			return false
		case variables.Found:
			several = several || request >= 0 && request != a.Request
			request = a.Request
		}
	}
	return several
}

// found lists the variables that have a value.
func found(ids []string, answers map[string]variables.Answer) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return answers[id].Verdict != variables.Found })
}

// named lists the variables that entries of a target name, in order. The others come from
// a wildcard, and nothing says which of them belong together.
func named(t *targets.Target) []string {
	if !slices.ContainsFunc(t.Parts(), func(part *targets.Target) bool { return len(part.Expanded) > 0 }) {
		return t.Variables()
	}
	is := map[string]bool{}
	for _, part := range t.Parts() {
		for _, e := range part.Entries {
			if !part.Expanded[e.Variable] {
				is[e.Variable] = true
			}
		}
	}
	return slices.DeleteFunc(t.Variables(), func(id string) bool { return !is[id] })
}

// together returns answers for a target whose values date from the same moment. If both
// readings needed several requests, a value that changed between them is unknown.
func together(t *targets.Target, first, second map[string]variables.Answer) map[string]variables.Answer {
	ids := named(t)
	if !apart(ids, first) {
		return first
	}
	answers := maps.Clone(first)
	for _, id := range found(ids, first) {
		answers[id] = second[id]
	}
	if !apart(ids, answers) {
		return answers
	}
	for _, id := range found(ids, answers) {
		if !first[id].Value.Equal(answers[id].Value) {
			answers[id] = variables.Answer{Err: fmt.Errorf("variable %q changed while the others of the target were read", id)}
		}
	}
	return answers
}
