package notify

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/targets"
)

// mostReads limits the immediate comparisons of a workload that others write between the
// read and the restart.
const mostReads = 5

// restart compares a workload and restarts it if there is a difference.
func (r *Restarts) restart(ctx context.Context, w targets.Workload, secrets []string) error {
	budget, now := r.budget(w.Namespace), time.Now()
	taken := budget.ReserveN(now, 1)
	if wait := taken.DelayFrom(now); wait > 0 { // before any request to the cluster
		taken.CancelAt(now)
		return &budgetError{w.Namespace, budget.Burst(), now.Add(wait + time.Millisecond)}
	}
	done, err := r.compare(ctx, w, secrets)
	if done == nil {
		taken.CancelAt(now) // canceling at a later time would count the restart as used
		return err
	}
	r.Reporter.Report("restarts in "+w.Namespace, nil)
	r.Log.Info("Workload restarted", zap.String("workload", inNamespace(w)), zap.Stringer("secrets", done))
	r.Listener.Restarted(*done)
	return nil
}

// compare returns the restart that it has made; nil if there was no difference. A write
// is valid only for the state that was compared: another leader may have restarted the
// workload in the meantime.
func (r *Restarts) compare(ctx context.Context, w targets.Workload, secrets []string) (*Restart, error) {
	for range mostReads {
		template, found, err := r.Cluster.PodTemplate(ctx, w)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, &missingError{}
		}
		restart, annotations, err := r.differences(ctx, w, template, secrets)
		if err != nil || len(annotations) == 0 {
			return nil, err
		}
		current, err := r.Cluster.Annotate(ctx, w, template, annotations)
		if err != nil {
			return nil, err
		}
		if current {
			return restart, nil
		}
	}
	return nil, fmt.Errorf("%s was not restarted: each of %d times others changed it after it was read", inNamespace(w), mostReads)
}

// differences returns the Secrets whose revisions the Pods have not seen, and the
// annotations with these revisions for the Pod template.
func (r *Restarts) differences(ctx context.Context, w targets.Workload, template targets.PodTemplate, secrets []string) (*Restart, map[string]string, error) {
	restart, annotations := &Restart{Workload: w}, map[string]string{}
	for _, secret := range secrets {
		revision, found, err := r.Cluster.Revision(ctx, w.Namespace, secret)
		if err != nil {
			return nil, nil, err
		}
		name := TemplateAnnotation(secret)
		noted := template.Annotations[name]
		if found && !revision.current(noted, template.Created) {
			annotations[name] = strconv.FormatInt(revision.Number, 10)
			restart.Because = append(restart.Because, RevisedSecret{secret, noted, annotations[name]})
		}
	}
	return restart, annotations, nil
}
