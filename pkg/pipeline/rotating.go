package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/connect"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/records"
	"github.com/secretsync/syncer/pkg/rotate"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/sinks/kubesecrets"
	"github.com/secretsync/syncer/pkg/targets"
)

// rotating rotates sets beside the lanes, in a queue of its own, so that no slow
// database delays a delivery. It knows what the Secrets show of the sets, and
// notes on them what happens.
type rotating struct {
	*pipeline
	rotator *rotate.Rotator
	client  *conjur.Client // that the next one goes on with, if it may

	mu      sync.Mutex
	earlier map[targets.Key]map[string]targets.DeliveredSet // of Secrets that this process has not delivered yet
}

// newRotating returns nil where nothing is to be rotated. What asks Conjur in the
// same way goes on with the connections and the token that there are.
func newRotating(p *pipeline, cfg *config.Config, before wiring) (r *rotating, err error) {
	if len(cfg.Rotation.Sets) == 0 || p.secrets == nil {
		return nil, nil
	}
	r = &rotating{pipeline: p, earlier: map[targets.Key]map[string]targets.DeliveredSet{}}
	parts := rotation.Parts{Options: p.reach, Cluster: p.host.cluster, Targets: r, Listener: r}
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
	if r.rotator, err = rotation.New(cfg.Rotation, r.client, parts); err != nil {
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
		sets = append(sets, health.Set{ID: report.Set, Stage: report.Stage, Since: report.Since, Made: report.Made, Due: report.Due})
	}
	return sets
}

// Shown implements rotate.Targets.
func (r *rotating) Shown(set string) (shown []rotate.Shown, err error) {
	if err := r.secrets.synced(); err != nil {
		return nil, err
	}
	for _, record := range r.records(shows(set)) {
		has, delivered := record.Status.Sets[set]
		if !delivered {
			if has, err = r.before(record.Spec, set); err != nil {
				return nil, err
			}
		}
		shown = append(shown, rotate.Shown{
			Namespace: record.Spec.Secret.Namespace, Name: record.Spec.Secret.Name, Step: has.Step, Primary: has.Primary, Since: has.Since,
		})
	}
	return shown, nil
}

// Since implements rotate.Targets.
func (r *rotating) Since(ctx context.Context, variables []string) (since time.Time, err error) {
	if err := r.secrets.synced(); err != nil {
		return since, err
	}
	has := func(e targets.Entry) bool { return slices.Contains(variables, e.Variable) }
	for _, record := range r.records(has) {
		s, err := r.host.cluster.Secret(ctx, record.Spec.Secret.Namespace, record.Spec.Secret.Name)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return since, err
		case since.IsZero() || s.CreationTimestamp.Time.Before(since):
			since = s.CreationTimestamp.Time
		}
	}
	return since, nil
}

// records returns the Secrets that have such an entry.
func (r *rotating) records(is func(targets.Entry) bool) (has []records.Record) {
	for _, record := range r.set.Records() {
		if slices.ContainsFunc(record.Spec.Parts(), func(part *targets.Target) bool { return slices.ContainsFunc(part.Entries, is) }) {
			has = append(has, record)
		}
	}
	return has
}

// shows returns what is true of the entries that show a set.
func shows(set string) func(targets.Entry) bool {
	return func(e targets.Entry) bool { return e.Set() && e.Variable == set }
}

// before returns what a Secret shows that an earlier process has delivered. It is
// asked for once.
func (r *rotating) before(t *targets.Target, set string) (targets.DeliveredSet, error) {
	r.mu.Lock()
	sets, known := r.earlier[t.Key]
	r.mu.Unlock()
	if known {
		return sets[set], nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.config().Conjur.HTTPTimeout)
	defer cancel()
	annotations, err := r.host.cluster.Annotations(ctx, t.Secret.Namespace, t.Secret.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return targets.DeliveredSet{}, err
	}
	sets = kubesecrets.ParseSets(annotations[targets.RotationAnnotation])
	r.mu.Lock()
	defer r.mu.Unlock()
	r.earlier[t.Key] = sets
	return sets[set], nil
}

// Rotated notes on the Secrets of a set what happens to it, and has them synced.
func (r *rotating) Rotated(e rotate.Event) {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	if e.Result != "" {
		r.host.metrics.Rotated(e.Set, e.Result)
	}
	for _, record := range r.records(shows(e.Set)) {
		r.secrets.news.event(record.Spec.Key, kind, e.Reason, e.Set+": "+e.Message)
		if e.Reason != rotate.EventWaiting {
			r.Enqueue(queue.Hint{Trigger: "rotation", Wakes: true}, record.Spec.Key)
		}
	}
}

// Failed implements rotate.Listener.
func (r *rotating) Failed(set, step string) { r.host.metrics.RotationFailed(set, step) }
