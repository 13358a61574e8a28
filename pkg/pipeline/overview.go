package pipeline

import (
	"cmp"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/health/status"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// page returns the handler of the status page, or nil if the page is off.
func (s *supervisor) page() *status.Handler {
	if !s.settings.config().Server.Status {
		return nil
	}
	return &status.Handler{Look: s.overview, TokenFile: s.settings.config().Server.StatusTokenFile}
}

// overview returns the current state of all targets.
func (s *supervisor) overview() (view status.Status) {
	cfg := s.settings.config()
	view = status.Status{
		At: time.Now(), Version: s.parts.Version, Mode: string(cfg.Mode), Lanes: []status.Lane{}, Targets: []status.Target{},
		Namespace: cfg.Kubernetes.Namespace, Pod: podName(cfg), Started: s.started,
	}
	p := s.active()
	if p == nil {
		view.Standby = s.leader()
		return view
	}
	for _, l := range p.lanes.all() {
		lane, ts := l.overview()
		view.Lanes, view.Targets = append(view.Lanes, lane), append(view.Targets, ts...)
	}
	for _, r := range p.rotations.reports() {
		view.Rotations = append(view.Rotations, status.Rotation{Set: r.Set, Stage: r.Stage, Since: r.Since, Primary: r.Primary, Due: r.Due, Waits: r.WaitsFor, Problem: r.Problem, Unasked: brief.List(r.Unasked), Unread: unread(r)})
	}
	slices.SortFunc(view.Targets, func(a, b status.Target) int { return cmp.Compare(a.Name, b.Name) })
	return view
}

// podName returns the name of the Pod of this process, or "" outside a Pod.
func podName(cfg *config.Config) string {
	if cfg.Kubernetes.PodName != "" || cfg.Kubernetes.Namespace == "" {
		return cfg.Kubernetes.PodName
	}
	name, _ := os.Hostname() // in a Pod it is the name, unless the Pod sets another one
	return name
}

// unread names the namespaces that show a set but cannot be watched.
func unread(r rotation.Report) string {
	var names []string
	for _, u := range r.Unread {
		names = append(names, u.Namespace+" ("+u.Why+")")
	}
	return brief.List(names)
}

func (l *lane) overview() (status.Lane, []status.Target) {
	all, waits, limited := l.targets.Records(), l.queue.Waiting(), l.targets.Limited()
	lane := status.Lane{Name: l.name, Targets: len(all), Polled: l.targets.LastPoll()}
	conjur := l.settings.config().Conjur
	if l.identity.Name != "" {
		conjur = l.identity.Conjur
	}
	lane.Login, lane.URL = conjur.Login, conjur.ApplianceURL
	ids, hold := l.values.Doubted()
	if hold.State != "" {
		lane.Held = status.Held{Gone: hold.Gone, Of: hold.Of, Until: hold.Until}
	}
	uncertain := map[targets.Key][]string{} // its doubted variables
	for _, id := range ids {
		for _, key := range l.targets.ByVariable(id) {
			uncertain[key] = append(uncertain[key], id)
		}
	}
	ts := make([]status.Target, len(all))
	for i, r := range all {
		t := status.Target{Name: string(r.Spec.Key), Lane: l.name, Proven: r.Status.Proven, Changed: r.Status.Changed}
		t.Place, t.Variables = l.place(r.Spec), brief.List(r.Spec.Variables())
		t.Expires = r.Status.Expires.At
		t.Overrides = strings.Join(overrides(r.Spec), ", ")
		doubted := uncertain[r.Spec.Key]
		t.State = l.state(r.Status, &t.Proven, len(doubted) > 0)
		if t.Limits = strings.Join(brief.Some(limited[r.Spec.Key], brief.Reasons), "; "); t.Limits != "" && t.State == status.Fresh {
			t.State = status.Limited
		}
		if err := r.Status.Err; err != nil {
			t.Error, t.Since = strings.ReplaceAll(err.Error(), "\n", "; "), r.Status.Trouble.Began
		}
		t.Waits, t.Next = l.awaited(t.State, r.Status.Err, waits[r.Spec.Key], doubted, hold.Until)
		ts[i] = t
	}
	return lane, ts
}

// place returns where a target is: the path of its file, or the name of its Secret.
func (l *lane) place(t *targets.Target) string {
	if t.Secret != nil {
		return t.Secret.Namespace + "/" + t.Secret.Name
	}
	if t.File.Path == "" { // a command gets it
		return ""
	}
	return path.Join(l.settings.config().Folders.Secrets, t.File.Path)
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
func (l *lane) state(s records.Status, proven *time.Time, uncertain bool) status.State {
	if s.Err != nil {
		if revoked, ok := errors.AsType[*workers.RevokedError](s.Err); ok && !revoked.Never {
			return status.Revoked
		}
		if !uncertain {
			return status.Failing
		}
	}
	if polled := l.targets.LastPoll(); s.Err == nil && !s.Proven.IsZero() && polled.After(s.Proven) {
		*proven = polled
	}
	bound := l.settings.config().Server.Freshness
	switch {
	case uncertain:
		return status.Doubted
	case s.Proven.IsZero():
		return status.Waiting
	case l.settings.config().Refresh.Enabled && bound > 0 && time.Since(*proven) > bound:
		return status.Stale
	}
	return status.Fresh
}

// awaited returns the event that a target waits for, and its time if known. If a target
// failed, the zero Wait means that no retry is scheduled.
func (l *lane) awaited(state status.State, err error, wait queue.Wait, doubted []string, held time.Time) (what string, next time.Time) {
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
