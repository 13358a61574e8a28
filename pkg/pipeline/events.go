package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// The reasons of the Events on Secrets, workloads and Pods.
const (
	reasonSynced    = "Synced"
	reasonFailed    = "SyncFailed"
	reasonInvalid   = "InvalidDefinition"
	reasonRemoved   = "Removed"
	reasonHeld      = "RemovalHeld"
	reasonRestarted = "Restarted"
	reasonStays     = "RestartFailed"
	reasonExpiring  = "Expiring"
	reasonNoPull    = "PullSecretFailed"
	reasonOnDisk    = "SecretsOnDisk"
	reasonContested = "Contested"
)

// news reports changes of Secrets: as Events for their readers, and as restarts for the
// workloads that use them.
type news struct {
	*pipeline
	recorder *kube.Recorder
	restarts *notify.Restarts // nil if Syncer restarts nothing
}

func newNews(p *pipeline) *news {
	n := &news{pipeline: p, recorder: p.host.cluster.NewRecorder("syncer", p.troubles)}
	if !p.config().Mode.OneShot() {
		limits := p.config().Kubernetes.Restarts
		n.restarts = &notify.Restarts{
			Cluster: workloads{p.host.cluster}, Quiet: limits.QuietPeriod, PerHour: limits.PerHour,
			Listener: n, Reporter: p.troubles, Log: p.Log,
		}
	}
	return n
}

// Run sends Events and restarts workloads until ctx ends.
func (n *news) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { n.recorder.Run(ctx) })
	if n.restarts != nil {
		n.restarts.Run(ctx)
	}
	wg.Wait()
}

// defined schedules a check of the workloads that use a Secret. An earlier process may
// have written the Secret and died before it restarted them.
func (n *news) defined(t *targets.Target) {
	if n.restarts != nil && len(t.Secret.Restart) > 0 && !t.Secret.Missing {
		n.restarts.Check(t.Secret.Namespace, t.Secret.Name, t.Secret.Restart)
	}
}

// Settled reports one sync, if there is something to report.
func (n *news) Settled(o Outcome) {
	if len(o.Revoked) > 0 {
		why := "Conjur has their values no longer, or not for this identity"
		if proof, ok := errors.AsType[*workers.RevokedError](o.Err); ok { // otherwise only an entry for all variables added them
			why = proof.Error()
		}
		n.event(o.Key, corev1.EventTypeWarning, reasonRemoved, fmt.Sprintf("Removed %s: %s", brief.List(o.Revoked), why))
	}
	if len(o.Dropped) > 0 {
		n.event(o.Key, corev1.EventTypeNormal, reasonRemoved, fmt.Sprintf("Removed %s, which the definition no longer has", brief.List(o.Dropped)))
	}
	if left := o.After.LeftOut; !slices.Equal(left, o.Before.LeftOut) {
		n.warned(o.Key, left)
	}
	if o.Err != nil {
		n.failed(n.reference(o.Key), o.Err)
	} else if o.Before.Err != nil || len(o.Set) > 0 {
		message := "All keys are as in Conjur"
		if len(o.Set) > 0 {
			message = "Wrote " + brief.List(o.Set)
		}
		n.event(o.Key, corev1.EventTypeNormal, reasonSynced, message)
	}
	if t, ok := n.set.Get(o.Key); ok && o.Wrote {
		n.defined(t)
	}
}

// warned reports the unused or missing parts of a Secret's definition.
func (n *news) warned(key targets.Key, warnings []string) {
	if len(warnings) > 0 {
		n.event(key, corev1.EventTypeWarning, reasonInvalid, strings.Join(warnings, "; "))
	}
}

// invalid reports that Syncer does not keep a Secret in sync.
func (n *news) invalid(t *targets.Target, why string) {
	about := kube.SecretReference(t.Secret.Namespace, t.Secret.Name, types.UID(t.Secret.UID))
	n.recorder.Event(about, corev1.EventTypeWarning, reasonInvalid, why)
}

// failed reports why a Secret is not up to date.
func (n *news) failed(about corev1.ObjectReference, err error) {
	reason := reasonFailed
	var invalid *workers.InvalidError
	if errors.As(err, &invalid) {
		reason = reasonInvalid
	}
	n.recorder.Event(about, corev1.EventTypeWarning, reason, err.Error())
}

// Held reports a hold on the Secrets that contain its variables.
func (n *news) Held(h Hold) {
	if h.State != variables.HoldBegan {
		return
	}
	message := fmt.Sprintf("%d of %d variables are gone at once; nothing is removed before %s", h.Gone, h.Of, h.Until.UTC().Format("15:04:05 UTC"))
	for _, key := range h.Keys[:min(brief.Names, len(h.Keys))] {
		n.event(key, corev1.EventTypeWarning, reasonHeld, message)
	}
}

// Restarted reports on a workload why Syncer restarted it.
func (n *news) Restarted(r notify.Restart) {
	n.host.metrics.Restarted(r.Workload.Namespace)
	kind := map[string]string{"deployment": "Deployment", "statefulset": "StatefulSet", "daemonset": "DaemonSet"}[r.Workload.Kind]
	about := corev1.ObjectReference{APIVersion: "apps/v1", Kind: kind, Namespace: r.Workload.Namespace, Name: r.Workload.Name}
	n.recorder.Event(about, corev1.EventTypeNormal, reasonRestarted, "Restarted because Secrets have changed: "+r.String())
}

// NotRestarted reports on Secrets that Syncer does not restart a workload that uses them.
func (n *news) NotRestarted(w notify.Workload, secrets []string, err error) {
	for _, name := range secrets {
		message := fmt.Sprintf("%s/%s cannot be restarted when this changes: %v", w.Kind, w.Name, err)
		n.event(targets.KubeSecretKey(w.Namespace, name), corev1.EventTypeWarning, reasonStays, message)
	}
}

// Missing reports on a Secret the workloads that it names but that do not exist.
func (n *news) Missing(namespace, secret string, err error) {
	n.event(targets.KubeSecretKey(namespace, secret), corev1.EventTypeWarning, reasonStays, err.Error())
}

func (n *news) event(key targets.Key, kind, reason, message string) {
	n.recorder.Event(n.reference(key), kind, reason, message)
}

// reference refers to a Secret in Events.
func (n *news) reference(key targets.Key) corev1.ObjectReference {
	namespace, name, _ := strings.Cut(strings.TrimPrefix(string(key), "secret/"), "/")
	uid := ""
	if t, ok := n.set.Get(key); ok {
		uid = t.Secret.UID
	}
	return kube.SecretReference(namespace, name, types.UID(uid))
}
