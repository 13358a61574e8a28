package kube

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// note is called with the outcome of each request, except one that finds no Lease.
// contested means that this process can write the Lease, or that another process holds
// it.
func (r *refusals) note(err error, contested bool) {
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
