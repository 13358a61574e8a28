package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// leases sends requests for the Leases of a namespace.
type leases interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(context.Context, *coordinationv1.Lease, metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(context.Context, *coordinationv1.Lease, metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// lease is the Lease of an Election as this process sees it. One goroutine at a time
// calls its methods.
type lease struct {
	Election
	api       leases
	candidate Candidate
	refusals  refusals
	term      *term

	live   *coordinationv1.Lease // as last seen; nil: it does not exist or was not read
	seen   time.Time             // when its content last changed
	until  time.Time             // when a lead based on the last write ends
	unsure bool                  // the outcome of the last write is unknown
}

// try acquires or renews the Lease, and reports whether this process holds it then. It
// does not hold it if others renew it, or have renewed it within the Lease's duration.
func (l *lease) try(ctx context.Context) bool {
	if l.holder() == l.Identity && l.write(ctx, l.Identity) == nil {
		return true
	}
	if err := l.readLease(ctx); err != nil || l.otherMayLead() {
		return false
	}
	return l.write(ctx, l.Identity) == nil
}

// otherMayLead reports whether another process may lead. It compares only local times,
// because other clocks may differ.
func (l *lease) otherMayLead() bool {
	holder := l.holder()
	return holder != "" && holder != l.Identity && time.Since(l.seen) < time.Duration(ptr.Deref(l.live.Spec.LeaseDurationSeconds, 0))*time.Second
}

// holder returns the holder of the Lease; "" means none.
func (l *lease) holder() string {
	if l.live == nil {
		return ""
	}
	return ptr.Deref(l.live.Spec.HolderIdentity, "")
}

// readLease reads the Lease. A missing Lease is not an error.
func (l *lease) readLease(ctx context.Context) error {
	call, cancel := l.limit(ctx)
	defer cancel()
	live, err := l.api.Get(call, l.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		l.live = nil
		return nil
	}
	if err == nil {
		l.see(live)
	}
	l.refusals.recordOutcome(err, err == nil && l.holder() != "" && l.holder() != l.Identity)
	l.report(ctx, err)
	return err
}

// write sets the holder and renews the Lease. If the holder is this process, it may lead
// for RenewDeadline from the moment the request was sent; others count from a later
// moment. The Lease must be unchanged since it was last seen.
func (l *lease) write(ctx context.Context, holder string) (err error) {
	call, cancel := l.limit(ctx)
	defer cancel()
	begin := time.Now()
	wanted := l.next(holder, metav1.NewMicroTime(begin))
	if l.live == nil {
		wanted, err = l.api.Create(call, wanted, metav1.CreateOptions{})
	} else {
		wanted, err = l.api.Update(call, wanted, metav1.UpdateOptions{})
	}
	_, refused := errors.AsType[*apierrors.StatusError](err)
	l.unsure = err != nil && !refused
	l.refusals.recordOutcome(err, err == nil)
	if err == nil {
		if l.see(wanted); holder == l.Identity {
			l.until = begin.Add(l.RenewDeadline)
			l.term.extend(begin.Add(l.LeaseDuration - l.RetryPeriod))
		}
	}
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) { // another process was faster
		l.report(ctx, err)
	}
	return err
}

// next returns the Lease with another holder.
func (l *lease) next(holder string, now metav1.MicroTime) *coordinationv1.Lease {
	next := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name}}
	transitions := int32(0)
	if l.live != nil {
		next = l.live.DeepCopy()
		transitions = ptr.Deref(next.Spec.LeaseTransitions, 0)
	}
	if delete(next.Annotations, selectorAnnotation); l.Selector != "" {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, selectorAnnotation, l.Selector)
	}
	seconds := int32(l.LeaseDuration / time.Second)
	switch {
	case holder == "":
		seconds = 1 // as Kubernetes' own components leave a free Lease; 0 is invalid
	case l.live == nil:
		next.Spec.AcquireTime = &now
	case holder != l.holder():
		next.Spec.AcquireTime = &now
		transitions++
	}
	next.Spec.HolderIdentity, next.Spec.LeaseDurationSeconds = &holder, &seconds
	next.Spec.RenewTime, next.Spec.LeaseTransitions = &now, &transitions
	return next
}

// see records the state of the Lease.
func (l *lease) see(live *coordinationv1.Lease) {
	if l.live == nil || !apiequality.Semantic.DeepEqual(l.live.Spec, live.Spec) {
		l.seen = time.Now()
	}
	l.live = live
	l.candidate.Leader(l.holder())
}

// release frees the Lease immediately, if this process holds it. It reads the Lease
// first, and again after a conflict. A write that was abandoned may have succeeded, or
// may succeed only now.
func (l *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.RenewDeadline)
	defer cancel()
	for l.readLease(ctx) == nil && l.holder() == l.Identity && apierrors.IsConflict(l.write(ctx, "")) {
	}
}

// limit bounds one request, so that a hanging request does not lose the Lease.
func (l *lease) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.RenewDeadline/2)
}

func (l *lease) report(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsForbidden(err) && !l.refusals.may {
		return // the process stops, so err means nothing; or err is reported if it lasts
	}
	l.candidate.Report(explain("lease "+l.Namespace+"/"+l.Name, err, right{l.Namespace, "leases.coordination.k8s.io", "get, create and update"}))
}

// patience is how many refusals in a row prove that a right is missing. An API server
// that has just started, or just received a Role, refuses requests too.
const patience = 2

// alone leads without the Lease, because this process may not read or write it. It does
// so until that is permitted or ctx ends. again reports that it is permitted now.
func (l *lease) alone(ctx context.Context) (again bool) {
	l.candidate.Remark(fmt.Errorf("lease %s/%s: %w; this process works without an election, so run one replica, or grant the verbs get, create and update for leases",
		l.Namespace, l.Name, l.refusals.last))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.term.extend(time.Time{})
	defer l.term.end()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		l.candidate.Lead(ctx)
	}()
	tick := time.NewTicker(l.LeaseDuration)
	defer tick.Stop()
	for {
		select {
		case <-returned:
			return false
		case <-tick.C:
		}
		if !l.mayContest(ctx) {
			continue
		}
		select {
		case <-returned: // Lead returned on its own during the check
			return false
		default:
			cancel()
			<-returned
			return true
		}
	}
}

// mayContest reports whether this process may read and write the Lease. It does not touch
// the Lease.
func (l *lease) mayContest(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, l.RenewDeadline)
	defer cancel()
	dry := []string{metav1.DryRunAll}
	live, err := l.api.Get(ctx, l.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = l.api.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name}}, metav1.CreateOptions{DryRun: dry})
	} else if err == nil {
		_, err = l.api.Update(ctx, live, metav1.UpdateOptions{DryRun: dry})
	}
	return err == nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// refusals counts how often access to the Lease was refused, until the process is known
// to have the right to contest.
type refusals struct {
	count int
	last  error
	may   bool
}

// enough reports whether a right is missing.
func (r *refusals) enough() bool { return !r.may && r.count >= patience }

// recordOutcome is called with the outcome of each request, except one that finds no
// Lease. contested means that this process can write the Lease, or that another process
// holds it.
func (r *refusals) recordOutcome(err error, contested bool) {
	switch {
	case contested:
		r.may = true
	case apierrors.IsForbidden(err):
		r.count++
		r.last = err
	case err != nil:
		r.count = 0
	}
}
