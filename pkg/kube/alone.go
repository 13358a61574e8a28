package kube

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patience is how many refusals in a row say that a right is missing: an API
// server that has just heard of a Role, or been started, refuses too.
const patience = 2

// alone leads without the Lease, which we may not read or write, until that is
// permitted or ctx ends; again reports that it is permitted now.
func (c *Client) alone(ctx context.Context, e Election, candidate Candidate) (again bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		candidate.Lead(ctx)
	}()
	tick := time.NewTicker(e.LeaseDuration)
	defer tick.Stop()
	for !again {
		select {
		case <-returned:
			return false
		case <-tick.C:
			again = c.mayContest(ctx, e)
		}
	}
	cancel()
	<-returned
	return true
}

// mayContest reports whether the Lease can be read and written, without doing
// so.
func (c *Client) mayContest(ctx context.Context, e Election) bool {
	ctx, cancel := context.WithTimeout(ctx, e.RenewDeadline)
	defer cancel()
	leases, dry := c.Coordination.Leases(e.Namespace), []string{metav1.DryRunAll}
	lease, err := leases.Get(ctx, e.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}}
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{DryRun: dry})
	}
	if err == nil && lease.UID != "" {
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{DryRun: dry})
	}
	return err == nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// errAlone is remarked on while this process leads alone.
func errAlone(e Election, err error) error {
	return fmt.Errorf("lease %s/%s: %w; this process works without an election, so run one replica, or grant the verbs get, create and update for leases",
		e.Namespace, e.Name, err)
}

// refusals counts how often the Lease was refused, for as long as it is not
// known that we may contest for it.
type refusals struct {
	count  int
	may    bool
	enough chan error // gets the last refusal, once there are enough
}

// note is called with the outcome of each request, by one goroutine at a time.
// holder is who holds the Lease then, if that is known.
func (r *refusals) note(err error, wrote bool, holder, us string) {
	switch {
	case err == nil && (wrote || holder != "" && holder != us):
		r.may = true // others contest, or we can
	case r.may:
	case apierrors.IsForbidden(err):
		if r.count++; r.count == patience {
			r.enough <- err
		}
	case err != nil && !apierrors.IsNotFound(err):
		r.count = 0
	}
}
