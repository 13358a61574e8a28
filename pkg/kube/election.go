package kube

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// The default times of an election are those of Kubernetes' own components.
const (
	defaultLeaseDuration = 15 * time.Second
	defaultRenewDeadline = 10 * time.Second
	defaultRetryPeriod   = 2 * time.Second
)

// Election is the contest for one Lease.
type Election struct {
	Namespace, Name string // of the Lease
	// Identity distinguishes this process from all other candidates, including an earlier
	// one with the same Pod name.
	Identity string
	// LeaseDuration is how long other candidates wait for a leader that no longer renews
	// the Lease, in whole seconds. RenewDeadline is how long a leader continues without a
	// renewal; it must be shorter. RetryPeriod is the time between tries, at most half of
	// RenewDeadline. Zero values mean 15 s, 10 s and 2 s.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// Selector is published in the Lease; see [Client.Claims]. It may be empty.
	Selector string
}

// Candidate is a participant of an election. Its methods, except Lead, are called one at
// a time.
type Candidate interface {
	// Lead is called each time this process acquires the Lease. It does the work until
	// its context ends.
	Lead(context.Context)
	// Leader is called with the identity of the leader whenever it changes; "" means no
	// leader.
	Leader(identity string)
	// Report is called with the state of access to the Lease; nil means no error.
	Report(error)
	// Remark is called with the reason while Lead runs without the Lease.
	Remark(error)
}

// Elect contests until ctx ends and calls Lead each time this process acquires the Lease.
// It returns after ctx has ended or Lead has returned on its own initiative, and never
// before Lead has returned. The Lease is then immediately free for others, if the API
// server is reachable. The error lists the faults of the Election.
//
// The context of Lead ends at the latest RenewDeadline after the start of the last
// successful renewal, whatever the API server does. Other candidates lead no sooner than
// LeaseDuration after they saw that renewal. Therefore Lead has LeaseDuration −
// RenewDeadline to return before another process leads. This requires that clocks run at
// about the same speed and that the process is not suspended. If ctx has ended, the Lease
// is renewed until Lead has returned, however long that takes.
//
// From the start of Elect on, the Client writes only during a term. A term starts when
// this process acquires the Lease. It ends RetryPeriod before another process can lead,
// counted from the start of the last renewal. Outside a term, writes fail without being
// sent, and writes in flight are canceled. MayWrite reports which case applies.
//
// If no role permits reading and writing the Lease, and no other process was seen to hold
// it, Lead is called without the Lease. The Roles of the Secrets Provider do not grant
// leases. Elect calls Remark about this. The state lasts until access to the Lease is
// permitted (decision 023).
func (c *Client) Elect(ctx context.Context, e Election, candidate Candidate) error {
	return elect(ctx, c.Coordination.Leases(e.Namespace), e, candidate, &c.term)
}

func elect(ctx context.Context, api leases, e Election, candidate Candidate, t *term) error {
	e.complete()
	if err := e.validate(); err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	t.contest()
	defer t.end()
	l := &lease{Election: e, api: api, candidate: &contestant{Candidate: candidate}, term: t}
	for again := true; again && ctx.Err() == nil; {
		again = l.contest(ctx)
	}
	return nil
}

func (e *Election) complete() {
	if e.LeaseDuration == 0 {
		e.LeaseDuration = defaultLeaseDuration
	}
	e.LeaseDuration = e.LeaseDuration.Truncate(time.Second) // the Lease has whole seconds
	if e.RenewDeadline == 0 {
		e.RenewDeadline = defaultRenewDeadline
	}
	if e.RetryPeriod == 0 {
		e.RetryPeriod = defaultRetryPeriod
	}
}

func (e *Election) validate() error {
	switch {
	case e.Identity == "":
		return errors.New("the identity is empty")
	case e.LeaseDuration <= e.RenewDeadline:
		return fmt.Errorf("the lease duration, %v, must be longer than the renew deadline, %v", e.LeaseDuration, e.RenewDeadline)
	case e.RetryPeriod < 0 || e.RenewDeadline < 2*e.RetryPeriod:
		return fmt.Errorf("the renew deadline, %v, must be at least twice the retry period, %v", e.RenewDeadline, e.RetryPeriod)
	}
	return nil
}

// contestant is a Candidate that is told each leader only once.
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

// contest waits for the Lease and leads once. again reports that the Lease was lost, or
// that the process may contest now.
func (l *lease) contest(ctx context.Context) (again bool) {
	l.refusals.count = 0
	for !l.try(ctx) {
		if l.refusals.enough() {
			return l.alone(ctx)
		}
		// The random delay separates candidates that started at the same time.
		if !pause(ctx, l.RetryPeriod+rand.N(l.RetryPeriod)) {
			if l.unsure {
				l.release(context.WithoutCancel(ctx))
			}
			return false
		}
	}
	return l.hold(ctx)
}

// hold leads while this process holds the Lease, and reports whether the Lease was lost.
func (l *lease) hold(ctx context.Context) (lost bool) {
	leading, end := context.WithCancel(ctx)
	defer end()
	expiry := time.AfterFunc(time.Until(l.until), end)
	defer expiry.Stop()
	isLost := func() bool { return leading.Err() != nil && ctx.Err() == nil }
	// The Lease is renewed until Lead has returned, even if ctx has ended. It is not
	// renewed after it was lost.
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var renewal sync.WaitGroup
	renewal.Go(func() {
		for pause(renewing, l.RetryPeriod) && !isLost() {
			switch {
			case l.try(renewing):
				expiry.Reset(time.Until(l.until))
			case l.otherMayLead(): // this process led for too long
				l.term.end()
				end()
			}
		}
	})
	l.candidate.Lead(leading)
	lost = isLost()
	stop()
	renewal.Wait()
	l.term.end()
	l.release(context.WithoutCancel(ctx))
	return lost
}

// pause waits and reports whether ctx is still active at the end.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
