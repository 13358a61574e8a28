package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/secretsync/syncer/pkg/targets"
)

// mostReads limits the immediate comparisons of a workload that others write between the
// read and the restart.
const mostReads = 5

// restart compares a workload and restarts it if there is a difference. It reports whether
// it did. A check of an earlier restart costs no budget, because mostRestarts limits its
// restarts.
func (r *Restarts) restart(ctx context.Context, w targets.Workload, secrets []string, check bool) (restarted bool, err error) {
	budget, now := r.budget(w.Namespace), time.Now()
	refund := func() {}
	if !check {
		taken := budget.ReserveN(now, 1)
		refund = func() { taken.CancelAt(now) }     // canceling at a later time would count the restart as used
		if wait := taken.DelayFrom(now); wait > 0 { // before any request to the cluster
			refund()
			return false, &budgetError{w.Namespace, budget.Burst(), now.Add(wait + time.Millisecond)}
		}
	}
	done, err := r.compare(ctx, w, secrets)
	if done == nil {
		refund()
		return false, err
	}
	r.Reporter.Report("restarts in "+w.Namespace, nil)
	r.Log.Info("Workload restarted", zap.String("workload", inNamespace(w)), zap.Stringer("secrets", done))
	r.Listener.Restarted(*done)
	return true, err
}

// compare returns the restart that it has made; nil if there was no difference. A write
// is valid only for the state that was compared: another leader may have restarted the
// workload in the meantime. The Secrets remember the restart after it was made. If the
// process dies in between, the Pod template says that it was made.
func (r *Restarts) compare(ctx context.Context, w targets.Workload, secrets []string) (*Restart, error) {
	for range mostReads {
		template, found, err := r.Cluster.PodTemplate(ctx, w)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, &MissingWorkloadError{}
		}
		restart, annotations, needs, err := r.differences(ctx, w, template, secrets)
		if err != nil {
			return nil, err
		}
		if len(annotations) > 0 {
			current, err := r.Cluster.Annotate(ctx, w, template, annotations)
			if err != nil {
				return nil, err
			}
			if !current {
				continue
			}
		}
		return restart, r.remember(ctx, w, needs)
	}
	return nil, fmt.Errorf("%s was not restarted: each of %d times others changed it after it was read", inNamespace(w), mostReads)
}

// remember stores at the Secrets what their workload has now, and reports each restart
// that was reverted. The memo makes it report that once.
func (r *Restarts) remember(ctx context.Context, w targets.Workload, needs map[string]need) error {
	var errs []error
	for _, secret := range slices.Sorted(maps.Keys(needs)) {
		n := needs[secret]
		if n.memo == nil {
			continue
		}
		if err := r.Cluster.Remember(ctx, w, secret, *n.memo); err != nil {
			errs = append(errs, err)
			continue
		}
		if n.reverted != "" {
			r.Log.Warn("Restart reverted by another client", zap.String("workload", inNamespace(w)), zap.String("secret", secret), zap.String("consequence", n.reverted))
			r.Listener.Reverted(w, secret, n.reverted)
		}
	}
	return errors.Join(errs...)
}

// differences returns the Secrets whose revisions the Pods have not seen, and the
// annotations with these revisions for the Pod template. The restart is nil if there are
// none. It also returns what each Secret needs.
func (r *Restarts) differences(ctx context.Context, w targets.Workload, template targets.PodTemplate, secrets []string) (*Restart, map[string]string, map[string]need, error) {
	var restart *Restart
	annotations, needs := map[string]string{}, map[string]need{}
	for _, secret := range secrets {
		revision, found, err := r.Cluster.Revision(ctx, w.Namespace, secret)
		if err != nil {
			return nil, nil, nil, err
		}
		if !found {
			continue
		}
		name := TemplateAnnotation(secret)
		noted := template.Annotations[name]
		needs[secret], err = revision.needs(w, noted, template.Created, func() (bool, error) { return r.Cluster.HasPodsOf(ctx, w, revision.At) })
		if err != nil {
			return nil, nil, nil, err
		}
		if needs[secret].restart {
			if restart == nil {
				restart = &Restart{Workload: w}
			}
			annotations[name] = strconv.FormatInt(revision.Number, 10)
			restart.Because = append(restart.Because, RevisedSecret{secret, cmp.Or(revision.Restarts[w.String()].Revision, noted), annotations[name]})
		}
	}
	return restart, annotations, needs, nil
}

// budget returns the budget of a namespace, which is full at first.
func (r *Restarts) budget(namespace string) *rate.Limiter {
	r.mu.Lock()
	perHour := r.PerHour
	r.mu.Unlock()
	if perHour <= 0 {
		perHour = perHourDefault
	}
	every := rate.Every(time.Hour / time.Duration(perHour))
	b := r.budgets[namespace]
	switch {
	case b == nil:
		b = rate.NewLimiter(every, perHour)
		if r.budgets == nil {
			r.budgets = map[string]*rate.Limiter{}
		}
		r.budgets[namespace] = b
	case b.Burst() != perHour:
		b.SetLimit(every)
		b.SetBurst(perHour)
	}
	return b
}

// budgetError means that a namespace has used up its restarts.
type budgetError struct {
	namespace string
	perHour   int
	until     time.Time
}

func (e *budgetError) Error() string {
	return fmt.Sprintf("the namespace %q has used its restarts (%d an hour); more wait until %s", e.namespace, e.perHour, e.until.Format(time.TimeOnly))
}
