package workers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// setsOf returns the version sets that the target must show, by variable, and the errors
// of the others. A set has an error if it cannot be read or is older than the delivered
// one. Such a target keeps its last good state.
func setsOf(r *job, answers map[string]variables.Answer) (sets map[string]targets.DeliveredSet, errs []error) {
	for _, part := range r.Spec.Parts() {
		for _, e := range part.Entries {
			if _, known := sets[e.Variable]; known || !e.Set() || answers[e.Variable].Verdict != variables.Found {
				continue
			}
			set, err := render.DeliveredSet(answers[e.Variable].Value.Bytes())
			was, delivered := r.Status.Sets[e.Variable]
			if err == nil && delivered {
				err = set.After(was)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("set %q: %w", e.Variable, err))
				continue
			}
			if delivered && set.Step == was.Step {
				set.Since = was.Since
			}
			if sets == nil {
				sets = map[string]targets.DeliveredSet{}
			}
			sets[e.Variable] = set
		}
	}
	return sets, errs
}

// older returns the errors of sets that are older than the content claims to show. An
// earlier process may have delivered that content.
func (d *draft) older(have sinks.State) (errs []error) {
	for _, id := range slices.Sorted(maps.Keys(d.sets)) {
		if was, delivered := have.Sets[id]; delivered {
			if err := d.sets[id].After(was); err != nil {
				errs = append(errs, fmt.Errorf("set %q: %w", id, err))
			}
		}
	}
	return errs
}

// revokeSets marks the existing data keys of sets that are gone for removal. Nothing else
// says which keys the set had, so the pattern of its entry selects them. A key stays if
// another entry may have created it.
func (d *draft) revokeSets(t *targets.Target, have sinks.State) {
	if t.Secret == nil || d.want.Gone == nil {
		return
	}
	for _, e := range t.Entries {
		if !e.Set() || !d.want.Revoked[e.Alias] {
			continue
		}
		delete(d.want.Revoked, e.Alias)
		for name := range have.Parts {
			if belongs(t, e, name) && !d.want.Keep[name] && !t.Secret.HoldAll {
				d.want.Revoked[name] = true
				d.want.Gone.Parts = append(d.want.Gone.Parts, name)
			}
		}
		slices.Sort(d.want.Gone.Parts)
	}
}

// keepSets keeps the summary of a set that is gone, if the policy keeps the set's data.
// The summary says which step the target shows. Without it, a new set with the same id
// would count as never delivered. Anyone who may write a Secret can forge its summary, so
// a summary that this process has not delivered is marked as claimed.
func (d *draft) keepSets(t *targets.Target, status records.Status, have sinks.State) {
	if d.want.Gone == nil || !d.want.Gone.Kept {
		return
	}
	for _, part := range t.Parts() {
		for _, e := range part.Entries {
			was, shown := have.Sets[e.Variable]
			if _, found := d.sets[e.Variable]; !e.Set() || !shown || found {
				continue
			}
			if d.sets = maps.Clone(d.sets); d.sets == nil {
				d.sets = map[string]targets.DeliveredSet{}
			}
			d.sets[e.Variable] = was
			if _, delivered := status.Sets[e.Variable]; t.Secret != nil && !delivered {
				d.claimed = append(d.claimed, e.Variable)
			}
		}
	}
}

// belongs reports whether a data key can only come from the set e.
func belongs(t *targets.Target, e targets.Entry, name string) bool {
	if !strings.HasPrefix(name, strings.TrimSuffix(e.Alias, "*")) {
		return false
	}
	for _, other := range t.Entries {
		prefix, pattern := strings.CutSuffix(other.Alias, "*")
		if other != e && (other.Alias == name || pattern && strings.HasPrefix(name, prefix)) {
			return false
		}
	}
	return !slices.ContainsFunc(t.Secret.Groups, func(group *targets.Target) bool { return group.Group == name })
}

// isSet reports whether a value is a version set. A wildcard does not deliver version
// sets, because no application could read them.
func isSet(e targets.Entry, a variables.Answer) bool {
	return a.Verdict == variables.Found && !e.Set() && render.IsSet(a.Value.Bytes())
}
