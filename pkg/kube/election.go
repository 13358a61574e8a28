package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
)

// The times of an election that are used where none are given; they are those
// of Kubernetes' own components.
const (
	defaultLeaseDuration = 15 * time.Second
	defaultRenewDeadline = 10 * time.Second
	defaultRetryPeriod   = 2 * time.Second
)

// Election is a contest for one Lease.
type Election struct {
	Namespace, Name string // of the Lease
	// Identity distinguishes this process from all others that contest, also from one
	// that had its Pod's name before.
	Identity string
	// LeaseDuration is how long others wait for a leader that no longer renews
	// the Lease; whole seconds. RenewDeadline is how long a leader goes on
	// without a renewal, and must be shorter; RetryPeriod is the time between
	// tries. Zero: 15 s, 10 s and 2 s.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// Candidate is who contests. Its methods but Lead are called one at a time.
type Candidate interface {
	// Lead is called each time the Lease is held, and does the work until its
	// context ends.
	Lead(context.Context)
	// Leader is called with the identity that leads, whenever that changes; ""
	// is nobody.
	Leader(identity string)
	// Report is called with how it goes with the Lease; nil means well.
	Report(error)
	// Remark is called with the reason while Lead is called without the Lease.
	Remark(error)
}

// Elect contests until ctx ends, and calls Lead each time the Lease is ours.
// It returns when ctx has ended, or Lead has returned of itself, and Lead has
// returned in any case; the Lease is then free for others at once, if the API
// server can be reached. The error says what is wrong with the Election.
//
// The context of Lead ends RenewDeadline after the begin of the last renewal
// that succeeded, at the latest, whatever the API server does. Others lead no
// sooner than LeaseDuration after they saw that renewal. So Lead has
// LeaseDuration − RenewDeadline to return before another process leads, as
// long as clocks run at about the same speed and the process is not suspended.
// When it is ctx that ended, the Lease is renewed until Lead has returned,
// however long that takes.
//
// Where no role permits to read and write the Lease, and it was not seen in
// another's hands either, Lead is called without it: the Roles of the Secrets
// Provider do not grant leases. That is remarked on, and lasts until the Lease
// is permitted (decision 023).
func (c *Client) Elect(ctx context.Context, e Election, candidate Candidate) error {
	e.complete()
	contestant := &contestant{Candidate: candidate}
	r := &refusals{enough: make(chan error, 1)}
	for ctx.Err() == nil {
		again, err := c.contest(ctx, e, r, contestant)
		if err != nil || !again {
			return err
		}
	}
	return nil
}

func (e *Election) complete() {
	if e.LeaseDuration == 0 {
		e.LeaseDuration = defaultLeaseDuration
	}
	e.LeaseDuration = e.LeaseDuration.Truncate(time.Second) // as the Lease has it
	if e.RenewDeadline == 0 {
		e.RenewDeadline = defaultRenewDeadline
	}
	if e.RetryPeriod == 0 {
		e.RetryPeriod = defaultRetryPeriod
	}
}

// contestant is a Candidate that hears of each leader once.
type contestant struct {
	Candidate
	last  string
	known bool
}

func (c *contestant) Leader(identity string) {
	if !c.known || identity != c.last {
		c.last, c.known = identity, true
		c.Candidate.Leader(identity)
	}
}

// contest waits for the Lease and leads once; again reports that the Lease was
// lost, or can be contested for now.
func (c *Client) contest(ctx context.Context, e Election, r *refusals, candidate *contestant) (again bool, err error) {
	r.count = 0
	lock := newLeaseLock(c, e, r, candidate)
	defer lock.expiry.Stop()
	elected := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: e.Name, ReleaseOnCancel: true,
		LeaseDuration: e.LeaseDuration, RenewDeadline: e.RenewDeadline, RetryPeriod: e.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(elected) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return false, fmt.Errorf("leader election: %w", err)
	}
	// The elector outlives ctx: it renews the Lease until lead has returned.
	electing, stop := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), c.log))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { elector.Run(electing) })
	select {
	case <-ctx.Done():
		return false, nil
	case <-elected:
		return hold(ctx, lock), nil
	case refused := <-r.enough:
		stop()
		wg.Wait()
		if r.may {
			return true, nil // permitted just now
		}
		candidate.Remark(errAlone(e, refused))
		return c.alone(ctx, e, candidate), nil
	}
}

// hold leads as long as the Lease is ours, and reports whether it was lost.
func hold(ctx context.Context, lock *leaseLock) (lost bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lock.hold(true)
	defer lock.hold(false)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		lock.candidate.Lead(ctx)
	}()
	select {
	case <-returned:
		return false
	case <-ctx.Done():
	case <-lock.expiry.C:
		lost = true
	}
	cancel()
	<-returned
	return lost
}
