package pipeline

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/pipeline/rotators"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/witnesses"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// rotations are the sets that are rotated. They tell the rotator where sets were
// delivered.
type rotations struct {
	settings *settings
	set      *records.Set
	lanes    *lanes
	secrets  *secrets
	events   *events
	metrics  *health.Metrics
	clients  connect.Options

	now atomic.Pointer[rotating] // nil if no set is rotated
}

// rotating rotates sets next to the lanes. It has a separate queue, so that a slow
// database does not delay deliveries. It
// records rotation events on the Secrets that show the sets.
type rotating struct {
	of      *rotations
	rotator *rotation.Rotator
	client  *conjur.Client // the next rotating reuses it if possible

	witnesses *witnesses.Witnesses
}

// prepare returns what rotates the sets of a configuration, or nil if there are none. If
// the connection settings are unchanged, it reuses the existing connections and token.
func (rs *rotations) prepare(before, cfg *config.Config) (r *rotating, err error) {
	old := rs.now.Load()
	switch {
	case before != nil && !config.Compare(before, cfg).Rotation:
		return old, nil
	case len(cfg.Rotation.Sets) == 0:
		return nil, nil
	}
	namespaces := map[string][]string{}
	for _, set := range cfg.Rotation.Sets {
		namespaces[set.Set] = set.Confirm.Namespaces
	}
	r = &rotating{of: rs, witnesses: witnesses.New(witnesses.Config{
		Namespaces: namespaces, Targets: rs.set, Cluster: rs.secrets.cluster, Process: rs,
		Timeout: func() time.Duration { return rs.settings.config().Conjur.HTTPTimeout },
	})}
	parts := rotators.Parts{Options: rs.clients, Cluster: rs.secrets.cluster, Targets: r.witnesses, Listener: r}
	if cfg.Kubernetes.LeaderElection.Enabled {
		parts.Lease = cfg.Kubernetes.LeaderElection.Duration
	}
	if old != nil {
		parts.Reports = old.rotator.Reports()
		if !config.Compare(before, cfg).RotationIdentity {
			r.client = old.client
		}
	}
	if r.client == nil {
		if r.client, err = connect.Conjur(cfg.Rotation.Conjur, rs.clients); err != nil {
			return nil, err
		}
	}
	if r.rotator, err = rotators.New(cfg.Rotation, r.client, parts); err != nil {
		r.close(old)
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

func (rs *rotations) close() { rs.now.Load().close(nil) }

func (rs *rotations) sources() []source {
	if r := rs.now.Load(); r != nil {
		return []source{r}
	}
	return nil
}

func (rs *rotations) reports() []rotation.Report {
	if r := rs.now.Load(); r != nil {
		return r.rotator.Reports()
	}
	return nil
}

// measured returns the metrics of the sets.
func (rs *rotations) measured() (sets []health.Set) {
	for _, report := range rs.reports() {
		set := health.Set{ID: report.Set, Stage: report.Stage, Since: report.Since, Made: report.Made, Due: report.Due, Unread: map[string]time.Time{}}
		for _, u := range report.Unread {
			set.Unread[u.Namespace] = u.Since
		}
		sets = append(sets, set)
	}
	return sets
}

// Settled implements SettledListener.
func (rs *rotations) Settled(o workers.Outcome) {
	r := rs.now.Load()
	if r == nil {
		return
	}
	namespace := rs.events.reference(o.Key).Namespace
	for set, has := range o.After.Sets {
		if !has.Claimed && r.witnesses.Permits(set, namespace) {
			r.rotator.Delivered(set, namespace)
		}
	}
}

// Rotated records an event of a set on the Secrets that show the set. It enqueues a sync
// of all Secrets that must show it.
func (r *rotating) Rotated(e rotation.Event) {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	if e.Result != "" {
		r.of.metrics.Rotated(e.Set, e.Result)
	}
	for _, record := range r.of.set.Showing(e.Set) {
		if r.witnesses.Counted(e.Set, record) {
			r.of.events.event(record.Spec.Key, kind, e.Reason, e.Set+": "+e.Message)
		}
		if e.Reason != rotation.EventWaiting {
			r.of.lanes.Enqueue(queue.Hint{Trigger: "rotation", Wakes: true}, record.Spec.Key)
		}
	}
}

// Failed implements rotation.Listener.
func (r *rotating) Failed(set, step string) { r.of.metrics.RotationFailed(set, step) }

// Watches implements witnesses.Process, like IdentityOf, IdentitiesOf and Client.
func (rs *rotations) Watches() (all []witnesses.Watch) {
	for _, watch := range rs.secrets.watches() {
		all = append(all, witnesses.Watch{Namespace: watch.Namespace, Incomplete: watch.Complete(), Unread: watch.Unread()})
	}
	return all
}

func (rs *rotations) IdentityOf(namespace, secret string) string {
	if identity, ok := rs.settings.config().IdentityOf(namespace, secret); ok {
		return identity.Name
	}
	return ""
}

func (rs *rotations) IdentitiesOf(namespace string) (names []string) {
	for _, identity := range rs.settings.config().Identities {
		if slices.ContainsFunc(identity.Secrets, func(s string) bool { return strings.HasPrefix(s, namespace+"/") }) {
			names = append(names, identity.Name)
		}
	}
	if identity, ok := rs.settings.config().IdentityOf(namespace, ""); ok {
		names = append(names, identity.Name)
	}
	return names
}

func (rs *rotations) Client(identity string) *conjur.Client {
	lanes := rs.lanes.all()
	i := slices.IndexFunc(lanes, func(l *lane) bool { return l.identity.Name == identity })
	if i < 0 {
		return nil
	}
	return lanes[i].client
}
