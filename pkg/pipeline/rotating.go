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

// rotating rotates sets next to the lanes. It has a separate queue, so that a slow
// database does not delay deliveries. It tracks which versions the Secrets show, and
// records rotation events on them.
type rotating struct {
	*pipeline
	rotator *rotation.Rotator
	client  *conjur.Client // the next rotating reuses it if possible

	shown *shown
}

// newRotating returns nil if there is nothing to rotate. If the connection settings are
// unchanged, it reuses the existing connections and token.
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

// close closes the client, unless other uses it too. Both r and other may be nil.
func (r *rotating) close(other *rotating) {
	if r != nil && (other == nil || other.client != r.client) {
		r.client.Close()
	}
}

// measured returns the metrics of the sets.
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

// Rotated records an event of a set on the Secrets that show the set. It enqueues a sync
// of all Secrets that must show it.
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

// deliveries tells the rotator where sets were delivered.
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
