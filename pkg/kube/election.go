package kube

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
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
	// tries, and at most half of that. Zero: 15 s, 10 s and 2 s.
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
// From its begin on the Client writes only during a term: from the moment at
// which the Lease is ours until RetryPeriod before another process can lead,
// counted from the begin of the last renewal. Other writes fail unsent, and those
// under way are cancelled; MayWrite says which it is.
//
// Where no role permits to read and write the Lease, and it was not seen in
// another's hands either, Lead is called without it: the Roles of the Secrets
// Provider do not grant leases. That is remarked on, and lasts until the Lease
// is permitted (decision 023).
func (c *Client) Elect(ctx context.Context, e Election, candidate Candidate) error {
	return elect(ctx, c.Coordination.Leases(e.Namespace), e, candidate, &c.term)
}

func elect(ctx context.Context, api leases, e Election, candidate Candidate, t *term) error {
	e.complete()
	if err := e.check(); err != nil {
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
	e.LeaseDuration = e.LeaseDuration.Truncate(time.Second) // as the Lease has it
	if e.RenewDeadline == 0 {
		e.RenewDeadline = defaultRenewDeadline
	}
	if e.RetryPeriod == 0 {
		e.RetryPeriod = defaultRetryPeriod
	}
}

func (e *Election) check() error {
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
func (l *lease) contest(ctx context.Context) (again bool) {
	l.refusals.count = 0
	for !l.try(ctx) {
		if l.refusals.enough() {
			return l.alone(ctx)
		}
		// Candidates that have begun together do not go on together.
		if !pause(ctx, l.RetryPeriod+rand.N(l.RetryPeriod)) {
			if l.unsure {
				l.release(context.WithoutCancel(ctx))
			}
			return false
		}
	}
	return l.hold(ctx)
}

// hold leads as long as the Lease is ours, and reports whether it was lost.
func (l *lease) hold(ctx context.Context) (lost bool) {
	leading, end := context.WithCancel(ctx)
	defer end()
	expiry := time.AfterFunc(time.Until(l.until), end)
	defer expiry.Stop()
	isLost := func() bool { return leading.Err() != nil && ctx.Err() == nil }
	// The Lease is renewed until Lead has returned, also when ctx has ended; but not
	// for a lead that has lost it.
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var renewal sync.WaitGroup
	renewal.Go(func() {
		for pause(renewing, l.RetryPeriod) && !isLost() {
			switch {
			case l.try(renewing):
				expiry.Reset(time.Until(l.until))
			case l.others(): // this process led too long
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

// pause waits, and reports whether ctx has not ended meanwhile.
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
