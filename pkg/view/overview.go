// Package view answers questions about lanes at work: which targets are fresh, whether the
// process is ready, and which keys the files hold. It only reads.
package view

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/health/status"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// Lane is the work of one identity.
type Lane struct {
	Name       string // of the identity, as in logs and metrics
	Login, URL string // the identity's name at Conjur, and the address of Conjur
	Targets    *records.Lane
	Values     *variables.Client
	Queue      *queue.Queue
	Pool       *workers.Pool
}

// Rules are the settings that decide the answers.
type Rules struct {
	Refreshes     bool          // changes in Conjur are followed
	Freshness     time.Duration // how old a proof of a fresh target may be; 0 means any age
	Tried         bool          // targets that were tried and failed do not prevent readiness
	SecretsFolder string
}

// Lanes returns the current state of lanes and their targets, sorted by name.
func Lanes(lanes []Lane, rules Rules) (all []status.Lane, ts []status.Target) {
	all, ts = []status.Lane{}, []status.Target{}
	for _, l := range lanes {
		lane, own := l.overview(rules)
		all, ts = append(all, lane), append(ts, own...)
	}
	slices.SortFunc(ts, func(a, b status.Target) int { return cmp.Compare(a.Name, b.Name) })
	return all, ts
}

// Rotations returns the current state of sets.
func Rotations(reports []rotation.Report) (sets []status.Rotation) {
	for _, r := range reports {
		sets = append(sets, status.Rotation{Set: r.Set, Stage: r.Stage, Since: r.Since, Primary: r.Primary, Due: r.Due, Waits: r.WaitsFor, Problem: r.Problem, Unasked: brief.List(r.Unasked), Unread: unread(r)})
	}
	return sets
}

// unread names the namespaces that show a set but cannot be watched.
func unread(r rotation.Report) string {
	var names []string
	for _, u := range r.Unread {
		names = append(names, u.Namespace+" ("+u.Why+")")
	}
	return brief.List(names)
}

func (l Lane) overview(rules Rules) (status.Lane, []status.Target) {
	all, waits, limited := l.Targets.Records(), l.Queue.Waiting(), l.Targets.Limited()
	lane := status.Lane{Name: l.Name, Targets: len(all), Polled: l.Targets.LastPoll(), Login: l.Login, URL: l.URL}
	ids, hold := l.Values.Doubted()
	if hold.State != "" {
		lane.Held = status.Held{Gone: hold.Gone, Of: hold.Of, Until: hold.Until}
	}
	uncertain := map[targets.Key][]string{} // its doubted variables
	for _, id := range ids {
		for _, key := range l.Targets.ByVariable(id) {
			uncertain[key] = append(uncertain[key], id)
		}
	}
	ts := make([]status.Target, len(all))
	for i, r := range all {
		t := status.Target{Name: string(r.Spec.Key), Lane: l.Name, Proven: r.Status.Proven, Changed: r.Status.Changed}
		t.Place, t.Variables = rules.place(r.Spec), brief.List(r.Spec.Variables())
		t.Expires = r.Status.Expires.At
		t.Overrides = strings.Join(overrides(r.Spec), ", ")
		doubted := uncertain[r.Spec.Key]
		if r.Status.TargetEmpty { // it never held their values
			doubted = nil
		}
		t.State = l.state(rules, r.Status, &t.Proven, len(doubted) > 0)
		if t.Limits = strings.Join(brief.Some(limited[r.Spec.Key], brief.Reasons), "; "); t.Limits != "" && t.State == status.Fresh {
			t.State = status.Limited
		}
		if err := r.Status.Err; err != nil {
			t.Error, t.Since = strings.ReplaceAll(err.Error(), "\n", "; "), r.Status.Trouble.Began
		}
		t.Waits, t.Next = awaited(t.State, r.Status.Err, waits[r.Spec.Key], doubted, hold.Until)
		ts[i] = t
	}
	return lane, ts
}

// place returns where a target is: the path of its file, or the name of its Secret.
func (r Rules) place(t *targets.Target) string {
	if t.Secret != nil {
		return t.Secret.Namespace + "/" + t.Secret.Name
	}
	if t.File.Path == "" { // a command gets it
		return ""
	}
	return path.Join(r.SecretsFolder, t.File.Path)
}

// overrides lists the node-specific variables that a target reads.
func overrides(t *targets.Target) (ids []string) {
	for _, e := range t.Entries {
		if e.General != "" {
			ids = append(ids, e.Variable)
		}
	}
	return ids
}

// state returns the state of a target, and updates the time of its last proof.
func (l Lane) state(rules Rules, s records.Status, proven *time.Time, uncertain bool) status.State {
	if s.Err != nil {
		if revoked, ok := errors.AsType[*workers.RevokedError](s.Err); ok && !revoked.Never {
			return status.Revoked
		}
		if !uncertain {
			return status.Failing
		}
	}
	if polled := l.Targets.LastPoll(); s.Err == nil && !s.Proven.IsZero() && polled.After(s.Proven) {
		*proven = polled
	}
	switch {
	case uncertain:
		return status.Doubted
	case s.Proven.IsZero():
		return status.Waiting
	case rules.Refreshes && rules.Freshness > 0 && time.Since(*proven) > rules.Freshness:
		return status.Stale
	}
	return status.Fresh
}

// awaited returns the event that a target waits for, and its time if known. If a target
// failed, the zero Wait means that no retry is scheduled.
func awaited(state status.State, err error, wait queue.Wait, doubted []string, held time.Time) (what string, next time.Time) {
	_, missing := errors.AsType[*sinks.MissingError](err)
	switch {
	case wait.Working:
		return "the end of its sync", next
	case wait.Queued:
		return "its turn", next
	case state == status.Doubted && !held.IsZero():
		return "the end of the hold on removals: " + brief.List(doubted), held
	case state == status.Doubted:
		return "proof that variables are gone: " + brief.List(doubted), next
	case state == status.Stale:
		return "a poll of Conjur that succeeds", next
	case missing:
		return "the Secret to be made", wait.Retry
	case !wait.Retry.IsZero():
		return "the next try", wait.Retry
	case state == status.Revoked:
		return "the variables to be back", next
	case state == status.Failing:
		return "a change of its variables, template or definition", next
	}
	return "", next
}
