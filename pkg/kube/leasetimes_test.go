package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// heldLease plays an API server with one Lease, in virtual time.
type heldLease struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
	hang    int           // so many requests are not answered; negative: none is
	late    time.Duration // after which a write that was done is answered
	edits   int           // so many writes meet what somebody else has just edited
	refuse  bool          // to renew
	renewed time.Time     // when the last write was sent
}

// answer waits for ever if it is to.
func (h *heldLease) answer(ctx context.Context) error {
	h.mu.Lock()
	hangs := h.hang != 0
	if h.hang > 0 {
		h.hang--
	}
	h.mu.Unlock()
	if hangs {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (h *heldLease) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := h.answer(ctx); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lease == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, name)
	}
	return h.lease.DeepCopy(), nil
}

func (h *heldLease) Create(ctx context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return h.Update(ctx, l, metav1.UpdateOptions{})
}

func (h *heldLease) Update(ctx context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	sent := time.Now()
	if err := h.answer(ctx); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.edits > 0 {
		h.edits--
		h.lease.ResourceVersion += "-edited"
	}
	if h.lease != nil && h.lease.ResourceVersion != l.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, l.Name, nil)
	}
	if h.refuse && *l.Spec.HolderIdentity != "" {
		return nil, apierrors.NewInternalError(errors.New("no"))
	}
	h.version++
	h.lease, h.renewed = l.DeepCopy(), sent
	h.lease.ResourceVersion = fmt.Sprint(h.version)
	answer, late := h.lease.DeepCopy(), h.late
	h.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(late):
	}
	h.mu.Lock()
	return answer, ctx.Err()
}

func (h *heldLease) set(change func(*heldLease)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(h)
}

// slowCandidate takes a while to return from each lead.
type slowCandidate struct {
	leads chan<- context.Context
	takes time.Duration
}

func (c slowCandidate) Lead(ctx context.Context) {
	c.leads <- ctx
	<-ctx.Done()
	time.Sleep(c.takes)
}

func (slowCandidate) Leader(string) {}
func (slowCandidate) Report(error)  {}
func (slowCandidate) Remark(error)  {}

// contestFor runs a contest in virtual time with the default durations; leads brings
// the contexts of the leads, each of which takes a while to return.
func contestFor(ctx context.Context, t *testing.T, h *heldLease, identity string, takes time.Duration) (leads chan context.Context, ended chan struct{}) {
	leads, ended = make(chan context.Context, 10), make(chan struct{})
	go func() {
		defer close(ended)
		err := elect(ctx, h, Election{Namespace: "n", Name: "syncer", Identity: identity}, slowCandidate{leads, takes}, &term{})
		if err != nil {
			t.Error(err)
		}
	}()
	return leads, ended
}

func TestALeadEndsBeforeAnotherCanBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := &heldLease{late: 3 * time.Second}
		const takes = defaultLeaseDuration - defaultRenewDeadline - time.Millisecond
		one, oneEnded := contestFor(ctx, t, h, "one", takes)
		lead := <-one
		time.Sleep(time.Minute)
		h.set(func(h *heldLease) { h.hang = -1 })
		<-lead.Done()
		if bound := h.renewed.Add(defaultRenewDeadline); time.Now().After(bound) {
			t.Errorf("the lead was told to end %v too late", time.Since(bound))
		}
		time.Sleep(takes)
		returned := time.Now()

		h.set(func(h *heldLease) { h.hang = 0 }) // for the other: as if it was reachable all the time
		other, otherEnded := contestFor(ctx, t, h, "other", 0)
		select {
		case <-other:
		case <-one: // it may well be the first again
		}
		if time.Now().Before(returned) {
			t.Error("two lead")
		}
		cancel()
		<-oneEnded
		<-otherEnded
	})
}

func TestOneRequestThatHangsDoesNotCostTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := &heldLease{}
		leads, ended := contestFor(ctx, t, h, "one", 0)
		lead := <-leads
		h.set(func(h *heldLease) { h.hang = 1 })
		time.Sleep(time.Minute)
		if lead.Err() != nil {
			t.Error("the lead was told to end")
		}
		cancel()
		<-ended
	})
}

func TestALeadEndsAtOnceWhenAnotherHoldsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := &heldLease{}
		leads, ended := contestFor(ctx, t, h, "one", 0)
		lead := <-leads
		begin := time.Now()
		h.set(func(h *heldLease) {
			holder := "other"
			h.lease.Spec.HolderIdentity, h.lease.ResourceVersion = &holder, "another"
		})
		<-lead.Done()
		if took := time.Since(begin); took > defaultRetryPeriod {
			t.Errorf("the lead was told to end after %v", took)
		}
		<-leads // when the other does not renew
		if took := time.Since(begin); took < defaultLeaseDuration {
			t.Errorf("leads again after %v, while the other may", took)
		}
		cancel()
		<-ended
	})
}

// Also when renewing it has been given up.
func TestTheLeaseIsNotGivenAwayUnderALead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := &heldLease{}
		leads, ended := contestFor(ctx, t, h, "one", time.Hour) // far too long
		lead := <-leads
		h.set(func(h *heldLease) { h.refuse = true })
		<-lead.Done()
		for range 30 {
			time.Sleep(time.Minute)
			h.set(func(h *heldLease) {
				if *h.lease.Spec.HolderIdentity != "one" {
					t.Errorf("the lease was given away")
				}
			})
		}
		cancel()
		<-ended
	})
}

func TestASilentAPIServerDoesNotHoldUpTheEndOfAnElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := &heldLease{}
		leads, ended := contestFor(ctx, t, h, "one", 0)
		<-leads
		h.set(func(h *heldLease) { h.hang = -1 })
		begin := time.Now()
		cancel()
		<-ended
		if took := time.Since(begin); took > defaultRenewDeadline {
			t.Errorf("it took %v", took)
		}
	})
}
