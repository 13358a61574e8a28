package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/brief"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/variables"
	"github.com/secretsync/syncer/pkg/workers"
)

// The reasons of the Events that appear on Secrets and workloads.
const (
	reasonSynced    = "Synced"
	reasonFailed    = "SyncFailed"
	reasonInvalid   = "InvalidDefinition"
	reasonRemoved   = "Removed"
	reasonHeld      = "RemovalHeld"
	reasonRestarted = "Restarted"
	reasonStays     = "RestartFailed"
)

// news tells the cluster what happens to Secrets: those who look at them by
// Events, and the workloads that use them by restarts.
type news struct {
	recorder  *kube.Recorder
	restarts  *notify.Restarts // nil where nothing is restarted
	reference func(targets.Key) corev1.ObjectReference

	mu      sync.Mutex
	failing map[targets.Key]bool // whose last Event tells of a failure
}

func newNews(p *pipeline, reference func(targets.Key) corev1.ObjectReference) *news {
	n := &news{
		recorder:  p.host.cluster.NewRecorder("syncer", p.troubles.Report),
		reference: reference,
		failing:   map[targets.Key]bool{},
	}
	if !p.cfg.Mode.OneShot() {
		limits := p.cfg.Kubernetes.Restarts
		n.restarts = &notify.Restarts{
			Cluster: workloads{p.host.cluster}, Quiet: limits.QuietPeriod, PerHour: limits.PerHour,
			Report: p.troubles.Report, Log: p.log,
			Restarted: func(r notify.Restart) {
				p.host.metrics.Restarted(r.Workload.Namespace)
				n.restarted(r)
			},
			Failed: n.stays,
		}
	}
	return n
}

// run sends Events and restarts workloads until ctx ends.
func (n *news) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { n.recorder.Run(ctx) })
	if n.restarts != nil {
		n.restarts.Run(ctx)
	}
	wg.Wait()
}

// defined has the workloads that use a Secret looked at: an earlier process
// may have written it and not lived to restart them.
func (n *news) defined(t *targets.Target) {
	if n.restarts != nil && len(t.Secret.Restart) > 0 && !t.Secret.Missing {
		n.restarts.Check(t.Secret.Namespace, t.Secret.Name, t.Secret.Restart)
	}
}

// settled tells of one sync, if there is anything to tell.
func (n *news) settled(l *lane, r workers.Result) {
	if len(r.Revoked) > 0 {
		why := "Conjur has their values no longer, or not for this identity"
		if proof, ok := errors.AsType[*workers.RevokedError](r.Err); ok { // else only what stands for all variables brought them in
			why = proof.Error()
		}
		n.event(r.Key, corev1.EventTypeWarning, reasonRemoved, fmt.Sprintf("Removed %s: %s", brief.List(r.Revoked), why))
	}
	if len(r.Dropped) > 0 {
		n.event(r.Key, corev1.EventTypeNormal, reasonRemoved, fmt.Sprintf("Removed %s, which the definition no longer has", brief.List(r.Dropped)))
	}
	if r.Err != nil {
		n.failed(r.Key, r.Err)
	} else if n.recovered(r.Key) || len(r.Set) > 0 {
		message := "All keys are as in Conjur"
		if len(r.Set) > 0 {
			message = "Wrote " + brief.List(r.Set)
		}
		n.event(r.Key, corev1.EventTypeNormal, reasonSynced, message)
	}
	if t, ok := l.targets.Get(r.Key); ok && r.Wrote {
		n.defined(t)
	}
}

// warned tells what of a Secret's definition is not used, or lacking.
func (n *news) warned(key targets.Key, warnings []string) {
	if len(warnings) > 0 {
		n.event(key, corev1.EventTypeWarning, reasonInvalid, strings.Join(warnings, "; "))
	}
}

// failed tells why a Secret is not as it should be.
func (n *news) failed(key targets.Key, err error) {
	n.mu.Lock()
	n.failing[key] = true
	n.mu.Unlock()
	reason := reasonFailed
	var invalid *workers.InvalidError
	if errors.As(err, &invalid) {
		reason = reasonInvalid
	}
	n.event(key, corev1.EventTypeWarning, reason, err.Error())
}

// recovered tells whether there was a failure, and that it is over.
func (n *news) recovered(key targets.Key) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	failing := n.failing[key]
	delete(n.failing, key)
	return failing
}

// forget drops what is known of a Secret that is no longer kept in sync.
func (n *news) forget(key targets.Key) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.failing, key)
}

// held tells the Secrets that hold variables whose removal is held back.
func (n *news) held(l *lane, e variables.HoldEvent) {
	if e.State != variables.HoldBegan {
		return
	}
	message := fmt.Sprintf("%d of %d variables are gone at once; nothing is removed before %s", e.Gone, e.Of, e.Until.UTC().Format("15:04:05 UTC"))
	for i, key := range l.targets.ByVariable(e.Variables...) {
		if i == brief.Names {
			return
		}
		n.event(key, corev1.EventTypeWarning, reasonHeld, message)
	}
}

// restarted tells a workload why it was restarted.
func (n *news) restarted(r notify.Restart) {
	kind := map[string]string{"deployment": "Deployment", "statefulset": "StatefulSet", "daemonset": "DaemonSet"}[r.Workload.Kind]
	about := corev1.ObjectReference{APIVersion: "apps/v1", Kind: kind, Namespace: r.Workload.Namespace, Name: r.Workload.Name}
	n.recorder.Event(about, corev1.EventTypeNormal, reasonRestarted, "Restarted because Secrets have changed: "+r.String())
}

// stays tells Secrets that a workload that uses them is not restarted.
func (n *news) stays(w notify.Workload, secrets []string, err error) {
	for _, name := range secrets {
		message := fmt.Sprintf("%s/%s cannot be restarted when this changes: %v", w.Kind, w.Name, err)
		n.event(targets.KubeSecretKey(w.Namespace, name), corev1.EventTypeWarning, reasonStays, message)
	}
}

func (n *news) event(key targets.Key, kind, reason, message string) {
	n.recorder.Event(n.reference(key), kind, reason, message)
}
