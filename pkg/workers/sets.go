package workers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// setsOf returns the version sets that the target must show, by variable, and the errors
// of the others. A set has an error if it cannot be read or is older than the delivered
// one. Such a target keeps its last good state.
func setsOf(r *job, answers map[string]variables.Answer) (sets map[string]targets.DeliveredSet, errs []error) {
	for _, part := range r.Spec.Parts() {
		for _, e := range part.Entries {
			if _, known := sets[e.Variable]; known || !e.IsSet() || answers[e.Variable].Verdict != variables.Found {
				continue
			}
			set, err := render.DeliveredSet(answers[e.Variable].Value.Bytes())
			was, delivered := r.Status.Sets[e.Variable]
			delivered = delivered && !was.Claimed
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
		if !e.IsSet() || !d.want.Revoked[e.Alias] {
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

// shown returns the sets that the target shows when its parts are these. Content that
// this sync made shows the present step. Content that stays keeps its step, even if its
// definition is now faulty or gone.
func (d *draft) shown(j *job, have sinks.State, parts map[string]secret.Value) map[string]targets.DeliveredSet {
	before := shownBefore(j, have)
	if j.Spec.Secret == nil { // its content is whole
		if d.held || d.want.Gone != nil && d.want.Gone.Kept {
			return before
		}
		return d.sets
	}
	var kept []string
	for name := range parts {
		if _, made := d.want.Parts[name]; !made {
			kept = append(kept, name)
		}
	}
	slices.Sort(kept)
	states := map[string][]targets.DeliveredSet{}
	for name := range d.want.Parts {
		for _, id := range d.makers[name] {
			set := d.sets[id]
			set.Parts = []string{name}
			states[id] = append(states[id], set)
		}
	}
	for id, was := range before {
		for _, state := range was.States() {
			if state.Parts == nil {
				state.Parts = kept
			}
			gone := func(name string) bool { _, stays := slices.BinarySearch(kept, name); return !stays }
			if state.Parts = slices.DeleteFunc(slices.Clone(state.Parts), gone); len(state.Parts) > 0 {
				states[id] = append(states[id], state)
			}
		}
	}
	sets := map[string]targets.DeliveredSet{}
	for id, all := range states {
		sets[id] = targets.JoinSets(all)
	}
	return sets
}

// shownBefore returns the sets that the target showed before this sync. Anyone who may
// write a Secret can forge its summary, so one that this process has not delivered is
// marked as claimed.
func shownBefore(j *job, have sinks.State) map[string]targets.DeliveredSet {
	sets := map[string]targets.DeliveredSet{}
	for id, claim := range have.Sets {
		claim.Claimed = j.Spec.Secret != nil
		sets[id] = claim
	}
	for id, was := range j.Status.Sets {
		if !was.Claimed {
			sets[id] = was
		}
	}
	return sets
}

// makersOf returns the sets of each data key of a Secret. made are those of the map, and
// groups the groups that were rendered.
func makersOf(made map[string]string, groups []*targets.Target) map[string][]string {
	makers := map[string][]string{}
	for name, id := range made {
		makers[name] = []string{id}
	}
	for _, group := range groups {
		for _, e := range group.Entries {
			if e.IsSet() {
				makers[group.Group] = append(makers[group.Group], e.Variable)
			}
		}
	}
	return makers
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
	return a.Verdict == variables.Found && !e.IsSet() && render.IsSet(a.Value.Bytes())
}
