package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
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
	reasonReverted  = "RestartReverted"
	reasonExpiring  = "Expiring"
	reasonOnDisk    = "SecretsOnDisk"
	reasonContested = "Contested"
)

// events reports changes of Secrets: as Events for their readers, and as restarts for the
// workloads that use them.
type events struct {
	set      *records.Set
	metrics  *health.Metrics
	recorder *kube.Recorder
	restarts *notify.Restarts // a one-shot process does not run them
}

func newEvents(set *records.Set, cluster *kube.Client, metrics *health.Metrics, troubles *health.Troubles) *events {
	return &events{set: set, metrics: metrics, recorder: cluster.NewRecorder("syncer", troubles)}
}

func newRestarts(cfg *config.Config, cluster *kube.Client, e *events, troubles *health.Troubles, log *zap.Logger) *notify.Restarts {
	limits := cfg.Kubernetes.Restarts
	return &notify.Restarts{
		Cluster: workloads{cluster}, Quiet: limits.QuietPeriod, PerHour: limits.PerHour,
		Listener: e, Reporter: troubles, Log: log,
	}
}

// defined schedules a check of the workloads that use a Secret. An earlier process may
// have written the Secret and died before it restarted them.
func (e *events) defined(t *targets.Target) {
	if len(t.Secret.Restart) > 0 && !t.Secret.Missing {
		e.restarts.Check(t.Secret.Namespace, t.Secret.Name, t.Secret.Restart)
	}
}

// Settled reports one sync, if there is something to report.
func (e *events) Settled(o workers.Outcome) {
	if len(o.Revoked) > 0 {
		why := "Conjur has their values no longer, or not for this identity"
		if proof, ok := errors.AsType[*workers.RevokedError](o.Err); ok { // otherwise only an entry for all variables added them
			why = proof.Error()
		}
		e.event(o.Key, corev1.EventTypeWarning, reasonRemoved, fmt.Sprintf("Removed %s: %s", brief.List(o.Revoked), why))
	}
	if len(o.Dropped) > 0 {
		e.event(o.Key, corev1.EventTypeNormal, reasonRemoved, fmt.Sprintf("Removed %s, which the definition no longer has", brief.List(o.Dropped)))
	}
	if left := o.After.LeftOut; !slices.Equal(left, o.Before.LeftOut) {
		e.warned(o.Key, left)
	}
	if o.Err != nil {
		e.failed(e.reference(o.Key), o.Err)
	} else if o.Before.Err != nil || len(o.Set) > 0 {
		message := "All keys are as in Conjur"
		if len(o.Set) > 0 {
			message = "Wrote " + brief.List(o.Set)
		}
		e.event(o.Key, corev1.EventTypeNormal, reasonSynced, message)
	}
	if t, ok := e.set.Get(o.Key); ok && o.Wrote {
		e.defined(t)
	}
}

// Expires reports on a Secret that a certificate in it expires soon.
func (e *events) Expires(key targets.Key, notice string) {
	e.event(key, corev1.EventTypeWarning, reasonExpiring, notice)
}

// Contested reports on a Secret that another client changed it. If this happens again and
// again, the status says so until Peace is called.
func (e *events) Contested(key targets.Key, why string, again bool) {
	if again {
		e.set.Hinder(key, records.Contest, errors.New(why))
	}
	e.event(key, corev1.EventTypeWarning, reasonContested, why)
}

// Peace implements workers.ContestListener.
func (e *events) Peace(key targets.Key) { e.set.Hinder(key, records.Contest, nil) }

// warned reports the unused or missing parts of a Secret's definition.
func (e *events) warned(key targets.Key, warnings []string) {
	if len(warnings) > 0 {
		e.event(key, corev1.EventTypeWarning, reasonInvalid, strings.Join(warnings, "; "))
	}
}

// invalid reports that Syncer does not keep a Secret in sync.
func (e *events) invalid(t *targets.Target, why string) {
	about := kube.SecretReference(t.Secret.Namespace, t.Secret.Name, types.UID(t.Secret.UID))
	e.recorder.Event(about, corev1.EventTypeWarning, reasonInvalid, why)
}

// failed reports why a Secret is not up to date.
func (e *events) failed(about corev1.ObjectReference, err error) {
	reason := reasonFailed
	var invalid *workers.InvalidError
	if errors.As(err, &invalid) {
		reason = reasonInvalid
	}
	e.recorder.Event(about, corev1.EventTypeWarning, reason, err.Error())
}

// Held reports a hold on the Secrets that contain its variables.
func (e *events) Held(h Hold) {
	if h.State != variables.HoldBegan {
		return
	}
	message := fmt.Sprintf("%d of %d variables are gone at once; nothing is removed before %s", h.Gone, h.Of, h.Until.UTC().Format("15:04:05 UTC"))
	for _, key := range h.Keys[:min(brief.Names, len(h.Keys))] {
		e.event(key, corev1.EventTypeWarning, reasonHeld, message)
	}
}

// Restarted reports on a workload why Syncer restarted it.
func (e *events) Restarted(r notify.Restart) {
	e.metrics.Restarted(r.Workload.Namespace)
	kind := map[string]string{"deployment": "Deployment", "statefulset": "StatefulSet", "daemonset": "DaemonSet"}[r.Workload.Kind]
	about := corev1.ObjectReference{APIVersion: "apps/v1", Kind: kind, Namespace: r.Workload.Namespace, Name: r.Workload.Name}
	e.recorder.Event(about, corev1.EventTypeNormal, reasonRestarted, "Restarted because Secrets have changed: "+r.String())
}

// Tried reports on Secrets that Syncer does not restart a workload that uses them. Missing
// reports those that do not exist.
func (e *events) Tried(w targets.Workload, secrets []string, err error) {
	_, missing := errors.AsType[*notify.MissingWorkloadError](err)
	for _, name := range secrets {
		e.set.Hinder(targets.KubeSecretKey(w.Namespace, name), w.String(), err)
		if err == nil || missing {
			continue
		}
		message := fmt.Sprintf("%s cannot be restarted when this changes: %v", w, err)
		e.event(targets.KubeSecretKey(w.Namespace, name), corev1.EventTypeWarning, reasonStays, message)
	}
}

// Reverted reports on a Secret that another client reverted the restart of a workload.
func (e *events) Reverted(w targets.Workload, secret, consequence string) {
	message := fmt.Sprintf("another client reverted the restart of %s; %s", w, consequence)
	e.event(targets.KubeSecretKey(w.Namespace, secret), corev1.EventTypeWarning, reasonReverted, message)
}

// Missing reports on a Secret the workloads that it names but that do not exist.
func (e *events) Missing(namespace, secret string, err error) {
	e.event(targets.KubeSecretKey(namespace, secret), corev1.EventTypeWarning, reasonStays, err.Error())
}

func (e *events) event(key targets.Key, kind, reason, message string) {
	e.recorder.Event(e.reference(key), kind, reason, message)
}

// reference refers to a Secret in Events.
func (e *events) reference(key targets.Key) corev1.ObjectReference {
	return kube.ReferenceTo(e.set, key)
}
