package pipeline

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/pipeline/rotators"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/rotation"
)

// rotating rotates sets beside the lanes, in a queue of its own, so that no slow
// database delays a delivery. It knows what the Secrets show of the sets, and
// notes on them what happens.
type rotating struct {
	*pipeline
	rotator *rotation.Rotator
	client  *conjur.Client // that the next one goes on with, if it may

	shown *shown
}

// newRotating returns nil where nothing is to be rotated. What asks Conjur in the
// same way goes on with the connections and the token that there are.
func newRotating(p *pipeline, cfg *config.Config, before wiring) (r *rotating, err error) {
	if len(cfg.Rotation.Sets) == 0 || p.secrets == nil {
		return nil, nil
	}
	r = &rotating{pipeline: p, shown: newShown(cfg.Rotation.Sets)}
	parts := rotators.Parts{Options: p.reach, Cluster: p.host.cluster, Targets: r, Listener: r}
	if cfg.Kubernetes.LeaderElection.Enabled {
		parts.Lease = cfg.Kubernetes.LeaderElection.Duration
	}
	if before.rotates != nil {
		parts.Reports = before.rotates.rotator.Reports()
		if !slices.Contains(config.Compare(before.cfg, cfg).Settings, "rotation.identity") {
			r.client = before.rotates.client
		}
	}
	if r.client == nil {
		if r.client, err = connect.Conjur(cfg.Rotation.Conjur, p.reach); err != nil {
			return nil, err
		}
	}
	if r.rotator, err = rotators.New(cfg.Rotation, r.client, parts); err != nil {
		r.close(before.rotates)
		return nil, err
	}
	return r, nil
}

// Run rotates until ctx ends.
func (r *rotating) Run(ctx context.Context) { r.rotator.Run(ctx) }

// close closes the client, unless another one has it too. There may be no r, and no
// other.
func (r *rotating) close(other *rotating) {
	if r != nil && (other == nil || other.client != r.client) {
		r.client.Close()
	}
}

// measured returns what metrics say of the sets.
func (p *pipeline) measured() (sets []health.Set) {
	r := p.wired.Load().rotates
	if r == nil {
		return nil
	}
	for _, report := range r.rotator.Reports() {
		set := health.Set{ID: report.Set, Stage: report.Stage, Since: report.Since, Made: report.Made, Due: report.Due, Unread: map[string]time.Time{}}
		for _, u := range report.Unread {
			set.Unread[u.Namespace] = u.Since
		}
		sets = append(sets, set)
	}
	return sets
}

// Rotated notes on the Secrets that show a set what happens to it. All that are to
// show it are synced.
func (r *rotating) Rotated(e rotation.Event) {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	if e.Result != "" {
		r.host.metrics.Rotated(e.Set, e.Result)
	}
	for _, record := range r.records(shows(e.Set)) {
		if r.shown.counted(e.Set, record) {
			r.secrets.news.event(record.Spec.Key, kind, e.Reason, e.Set+": "+e.Message)
		}
		if e.Reason != rotation.EventWaiting {
			r.Enqueue(queue.Hint{Trigger: "rotation", Wakes: true}, record.Spec.Key)
		}
	}
}

// deliveries tells who rotates sets where they were delivered to.
type deliveries struct{ *pipeline }

// Settled implements SettledListener.
func (d deliveries) Settled(o Outcome) {
	r := d.wired.Load().rotates
	if r == nil {
		return
	}
	namespace := d.secrets.news.reference(o.Key).Namespace
	for set := range o.After.Sets {
		if r.shown.permitted(set, namespace) {
			r.rotator.Delivered(set, namespace)
		}
	}
}

// Failed implements rotation.Listener.
func (r *rotating) Failed(set, step string) { r.host.metrics.RotationFailed(set, step) }
