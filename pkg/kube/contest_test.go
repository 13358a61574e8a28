package kube

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// poorLink is one candidate's way to the API server, on which requests and
// answers get lost and take their time.
type poorLink struct {
	*heldLease
	mu   sync.Mutex
	seed *rand.Rand
	good bool // from now on
}

// trouble is what happens to a request and to its answer.
func (l *poorLink) trouble(ctx context.Context) (before, after func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hang := func() error { <-ctx.Done(); return ctx.Err() }
	fail := func() error { return errors.New("connection lost") }
	slow := time.Duration(l.seed.Int64N(int64(defaultRenewDeadline / 4)))
	wait := func() error {
		select {
		case <-ctx.Done():
		case <-time.After(slow):
		}
		return ctx.Err()
	}
	kinds := []func() error{hang, fail, wait, wait, wait, wait}
	if l.good {
		kinds = []func() error{func() error { return nil }} // no answer is late
	}
	return kinds[l.seed.IntN(len(kinds))], kinds[l.seed.IntN(len(kinds))]
}

func (l *poorLink) through(ctx context.Context, request func() (*coordinationv1.Lease, error)) (*coordinationv1.Lease, error) {
	before, after := l.trouble(ctx)
	if err := before(); err != nil {
		return nil, err
	}
	answer, err := request()
	if lost := after(); lost != nil {
		return nil, lost
	}
	return answer, err
}

func (l *poorLink) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.through(ctx, func() (*coordinationv1.Lease, error) { return l.heldLease.Get(ctx, name, o) })
}

func (l *poorLink) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.through(ctx, func() (*coordinationv1.Lease, error) { return l.heldLease.Create(ctx, lease, o) })
}

func (l *poorLink) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.through(ctx, func() (*coordinationv1.Lease, error) { return l.heldLease.Update(ctx, lease, o) })
}

// counted is a candidate whose leads are counted while they last.
type counted struct {
	slowCandidate
	leading *atomic.Int32
	most    *atomic.Int32 // that were at once
}

func (c counted) Lead(ctx context.Context) {
	if now := c.leading.Add(1); now > c.most.Load() {
		c.most.Store(now)
	}
	defer c.leading.Add(-1)
	c.slowCandidate.Lead(ctx)
}

// TestNeverTwoLead for an hour, whatever becomes of requests, while each takes as
// long to return as it may; and one leads once requests succeed again.
func TestNeverTwoLead(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			h := &heldLease{}
			var leading, most atomic.Int32
			leads := make(chan context.Context, 10_000)
			candidate := counted{slowCandidate{leads, defaultLeaseDuration - defaultRenewDeadline - time.Millisecond}, &leading, &most}
			var links []*poorLink
			var contests sync.WaitGroup
			for i, name := range []string{"one", "two", "three"} {
				link := &poorLink{heldLease: h, seed: rand.New(rand.NewPCG(seed, uint64(i)))}
				links = append(links, link)
				contests.Go(func() {
					if err := elect(ctx, link, Election{Namespace: "n", Name: "syncer", Identity: name}, candidate, &term{}); err != nil {
						t.Error(err)
					}
				})
			}
			time.Sleep(time.Hour)
			if most.Load() != 1 || len(leads) < 3 {
				t.Errorf("seed %d: %d led at once, in %d terms; want one, in several", seed, most.Load(), len(leads))
			}
			for _, link := range links {
				link.mu.Lock()
				link.good = true
				link.mu.Unlock()
			}
			time.Sleep(3 * defaultLeaseDuration)
			if leading.Load() != 1 {
				t.Errorf("seed %d: %d lead at the end", seed, leading.Load())
			}
			cancel()
			contests.Wait()
		})
	}
}

// specOf is what the Lease says now.
func (h *heldLease) specOf() (holder string, seconds, transitions int32, acquired time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.lease.Spec
	return *s.HolderIdentity, *s.LeaseDurationSeconds, *s.LeaseTransitions, s.AcquireTime.Time
}

func TestTheLeaseSaysWhoLeadsAndSinceWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heldLease{}
		for term, name := range []string{"one", "two"} {
			ctx, cancel := context.WithCancel(t.Context())
			leads, ended := contestFor(ctx, t, h, name, 0)
			<-leads
			begin := time.Now()
			time.Sleep(time.Minute)
			if holder, seconds, transitions, acquired := h.specOf(); holder != name || seconds != 15 || transitions != int32(term) || !acquired.Equal(begin) {
				t.Errorf("%q holds the lease for %d s since %v, after %d others; want %q, 15, %v, %d", holder, seconds, acquired, transitions, name, begin, term)
			}
			cancel()
			<-ended
			// As client-go leaves a Lease: its candidates wait for as long as it says.
			if holder, seconds, _, _ := h.specOf(); holder != "" || seconds != 1 {
				t.Errorf("%q holds the lease at the end, for %d s", holder, seconds)
			}
		}
	})
}

// TestAnotherIsWaitedForAsLongAsItsLeaseSays from its last renewal on, which
// other changes of the Lease are not.
func TestAnotherIsWaitedForAsLongAsItsLeaseSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		other, seconds := "other", int32(60)
		h := &heldLease{lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &seconds}}}
		begin := time.Now()
		leads, ended := contestFor(ctx, t, h, "one", 0)
		time.Sleep(30 * time.Second)
		h.set(func(h *heldLease) { h.lease.ResourceVersion, h.lease.Labels = "another", map[string]string{"a": "b"} })
		<-leads
		if took := time.Since(begin); took < time.Minute || took > time.Minute+3*defaultRetryPeriod {
			t.Errorf("it leads after %v, want a minute", took)
		}
		if h.lease.Labels["a"] != "b" {
			t.Error("what others have noted on the lease is gone")
		}
		cancel()
		<-ended
	})
}

// assertFree ends a contest and finds the Lease free.
func assertFree(t *testing.T, h *heldLease, cancel context.CancelFunc, ended <-chan struct{}) {
	t.Helper()
	cancel()
	<-ended
	if holder, _, _, _ := h.specOf(); holder != "" {
		t.Errorf("%q holds the lease at the end", holder)
	}
}

// TestAWriteThatIsGivenUpDoesNotKeepTheLease though it was done.
func TestAWriteThatIsGivenUpDoesNotKeepTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := &heldLease{}
		leads, ended := contestFor(ctx, t, h, "one", 0)
		<-leads
		h.set(func(h *heldLease) { h.late = time.Hour })
		time.Sleep(defaultRetryPeriod + time.Second) // the renewal waits for its answer
		assertFree(t, h, cancel, ended)

		h.set(func(h *heldLease) { h.lease = nil })
		ctx, cancel = context.WithCancel(t.Context())
		_, ended = contestFor(ctx, t, h, "two", 0)
		time.Sleep(time.Second) // so does the creation
		assertFree(t, h, cancel, ended)
	})
}

func TestConflictsDoNotKeepTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := &heldLease{}
		leads, ended := contestFor(ctx, t, h, "one", 0)
		<-leads
		h.set(func(h *heldLease) { h.edits = 2 })
		assertFree(t, h, cancel, ended)
	})
}

// TestALostTermIsNotRenewed although its lead goes on: others take over.
func TestALostTermIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := &heldLease{}
		one, oneEnded := contestFor(ctx, t, h, "one", time.Hour)
		lead := <-one
		h.set(func(h *heldLease) { h.hang = -1 })
		<-lead.Done()
		h.set(func(h *heldLease) { h.hang = 0 })
		two, twoEnded := contestFor(ctx, t, h, "two", 0)
		select {
		case <-two:
		case <-time.After(defaultLeaseDuration + 3*defaultRetryPeriod):
			t.Error("no other leads")
		}
		cancel()
		<-oneEnded
		<-twoEnded
	})
}
