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

// leases is the requests for the Leases of a namespace.
type leases interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(context.Context, *coordinationv1.Lease, metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(context.Context, *coordinationv1.Lease, metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// lease is the Lease of an Election as one process sees it. One goroutine at a
// time calls its methods.
type lease struct {
	Election
	api       leases
	candidate Candidate
	refusals  refusals
	term      *term

	live   *coordinationv1.Lease // as it was last seen; nil: it is not there, or was not looked for
	seen   time.Time             // when what it says was new
	until  time.Time             // when a lead by the last write ends
	unsure bool                  // whether the last write was done
}

// try takes the Lease, or renews it, and reports whether it is ours then. As long
// as others renew it, or have done so within the time that it says, it is not.
func (l *lease) try(ctx context.Context) bool {
	if l.holder() == l.Identity && l.write(ctx, l.Identity) == nil {
		return true
	}
	if err := l.read(ctx); err != nil || l.others() {
		return false
	}
	return l.write(ctx, l.Identity) == nil
}

// others reports whether another process may lead. Only clocks of this process
// are compared: those of others may differ.
func (l *lease) others() bool {
	holder := l.holder()
	return holder != "" && holder != l.Identity && time.Since(l.seen) < time.Duration(ptr.Deref(l.live.Spec.LeaseDurationSeconds, 0))*time.Second
}

// holder returns who holds the Lease; "" is nobody.
func (l *lease) holder() string {
	if l.live == nil {
		return ""
	}
	return ptr.Deref(l.live.Spec.HolderIdentity, "")
}

// read looks at the Lease. That there is none is no error.
func (l *lease) read(ctx context.Context) error {
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
	l.refusals.note(err, err == nil && l.holder() != "" && l.holder() != l.Identity)
	l.report(ctx, err)
	return err
}

// write makes the holder another, and renews the Lease. When that is this process
// it may lead for RenewDeadline from when the request was sent: others count from
// later. The Lease must be as it was last seen.
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
	l.refusals.note(err, err == nil)
	if err == nil {
		if l.see(wanted); holder == l.Identity {
			l.until = begin.Add(l.RenewDeadline)
			l.term.extend(begin.Add(l.LeaseDuration - l.RetryPeriod))
		}
	}
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) { // another was faster
		l.report(ctx, err)
	}
	return err
}

// next is the Lease with another holder.
func (l *lease) next(holder string, now metav1.MicroTime) *coordinationv1.Lease {
	next := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name}}
	transitions := int32(0)
	if l.live != nil {
		next = l.live.DeepCopy()
		transitions = ptr.Deref(next.Spec.LeaseTransitions, 0)
	}
	seconds := int32(l.LeaseDuration / time.Second)
	switch {
	case holder == "":
		seconds = 1 // as Kubernetes' own components leave a Lease that is free; none is invalid
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

// see notes how the Lease is.
func (l *lease) see(live *coordinationv1.Lease) {
	if l.live == nil || !apiequality.Semantic.DeepEqual(l.live.Spec, live.Spec) {
		l.seen = time.Now()
	}
	l.live = live
	l.candidate.Leader(l.holder())
}

// release lets others have the Lease at once, if it is ours. It is read first, and
// again after a conflict: a write that was given up may have been done, or be done
// only now.
func (l *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.RenewDeadline)
	defer cancel()
	for l.read(ctx) == nil && l.holder() == l.Identity && apierrors.IsConflict(l.write(ctx, "")) {
	}
}

// limit lets one request that hangs not cost the Lease.
func (l *lease) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.RenewDeadline/2)
}

func (l *lease) report(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsForbidden(err) && !l.refusals.may {
		return // stopping, so nothing is known; or to be reported when it lasts
	}
	if err != nil {
		err = fmt.Errorf("lease %s/%s: %w", l.Namespace, l.Name, err)
	}
	l.candidate.Report(err)
}
