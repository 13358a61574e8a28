package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseLock is client-go's lock with a timer that ends a lead whose Lease
// could not be renewed, and without a way to give the Lease away under a lead
// that still goes on: client-go ends the lead only after it gave the Lease
// away, or tried to for as long as RenewDeadline again.
type leaseLock struct {
	resourcelock.Interface
	election  Election
	candidate Candidate
	expiry    *time.Timer
	refusals  *refusals

	mu   sync.Mutex
	held bool
}

var errLeading = errors.New("this process still leads")

func newLeaseLock(c *Client, e Election, r *refusals, candidate Candidate) *leaseLock {
	return &leaseLock{
		election: e, candidate: candidate, refusals: r,
		expiry: time.NewTimer(e.RenewDeadline),
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name},
			Client:     c.Coordination,
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.Identity},
		},
	}
}

func (l *leaseLock) hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
}

func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	call, cancel := l.limit(ctx)
	defer cancel()
	record, raw, err := l.Interface.Get(call)
	holder := ""
	if err == nil {
		holder = record.HolderIdentity
	}
	l.refusals.note(err, false, holder, l.election.Identity)
	if err == nil {
		l.candidate.Leader(record.HolderIdentity)
		if record.HolderIdentity != "" && record.HolderIdentity != l.election.Identity {
			l.expiry.Reset(0) // should this process lead, it did too long
		}
	}
	if !apierrors.IsNotFound(err) { // that one is made next
		l.report(ctx, err)
	}
	return record, raw, err
}

func (l *leaseLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, r, l.Interface.Create)
}

func (l *leaseLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	if held && r.HolderIdentity == "" {
		return errLeading
	}
	return l.write(ctx, r, l.Interface.Update)
}

// write sends a record. When it makes or keeps this process the leader, it may
// lead for RenewDeadline from when the record was sent: others count from later.
func (l *leaseLock) write(ctx context.Context, r resourcelock.LeaderElectionRecord, send func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	call, cancel := l.limit(ctx)
	defer cancel()
	begin := time.Now()
	err := send(call, r)
	l.refusals.note(err, true, "", "")
	if err == nil {
		l.candidate.Leader(r.HolderIdentity)
		if r.HolderIdentity == l.election.Identity {
			l.expiry.Reset(l.election.RenewDeadline - time.Since(begin))
		}
	}
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) { // another was faster
		l.report(ctx, err)
	}
	return err
}

// limit lets one request that hangs not cost the Lease.
func (l *leaseLock) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.election.RenewDeadline/2)
}

func (l *leaseLock) report(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsForbidden(err) && !l.refusals.may {
		return // stopping, so nothing is known; or to be reported when it lasts
	}
	if err != nil {
		err = fmt.Errorf("lease %s/%s: %w", l.election.Namespace, l.election.Name, err)
	}
	l.candidate.Report(err)
}
