package kube_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/test/proctest"
)

// candidate contests for the lease of a test. Its lead hands on its context
// and returns when it is told to.
type candidate struct {
	t             *testing.T
	leading       *atomic.Int32 // of all candidates
	leads         chan context.Context
	let           chan struct{} // lets one lead return
	leader        chan string
	errs, remarks chan error
	ended         chan error
	stop          func()
}

func contest(t *testing.T, c *kube.Client, namespace, identity string, leading *atomic.Int32) *candidate {
	t.Helper()
	p := &candidate{
		t: t, leading: leading,
		leads: make(chan context.Context, 10), let: make(chan struct{}, 10),
		leader: make(chan string, 1000), errs: make(chan error, 1000), remarks: make(chan error, 1000), ended: make(chan error, 1),
	}
	e := kube.Election{
		Namespace: namespace, Name: "syncer", Identity: identity,
		LeaseDuration: 4 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
	}
	p.stop = running(t, func(ctx context.Context) { p.ended <- c.Elect(ctx, e, p) })
	t.Cleanup(func() { close(p.let) }) // before stop, so that it can
	return p
}

func (p *candidate) Lead(ctx context.Context) {
	if p.leading.Add(1) > 1 {
		p.t.Error("two lead")
	}
	defer p.leading.Add(-1)
	p.leads <- ctx
	<-p.let
}

func (p *candidate) Leader(identity string) { p.leader <- identity }
func (p *candidate) Report(err error)       { p.errs <- err }
func (p *candidate) Remark(err error)       { p.remarks <- err }

// lease reads who holds the lease, and when it was renewed.
func lease(t *testing.T, c *kube.Client, namespace string) (holder string, renewed time.Time) {
	t.Helper()
	l, err := c.Coordination.Leases(namespace).Get(t.Context(), "syncer", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *l.Spec.HolderIdentity, l.Spec.RenewTime.Time
}

func TestTheNextLeadsWhenTheLeaderHasReturned(t *testing.T) {
	t.Parallel()
	c, ns := connect(t, ""), cluster.Namespace(t)
	var leading atomic.Int32
	one := contest(t, c, ns, "one", &leading)
	first := next(t, one.leads, "the first lead")
	if got := next(t, one.leader, "a leader"); got != "one" {
		t.Errorf("%q leads, want one", got)
	}
	two := contest(t, c, ns, "two", &leading)
	if got := next(t, two.leader, "a leader"); got != "one" {
		t.Errorf("to two, %q leads, want one", got)
	}

	stopped := make(chan struct{})
	go func() { defer close(stopped); one.stop() }()
	<-first.Done()
	// Longer than the lease lasts, the one that still works keeps it.
	_, begin := lease(t, c, ns)
	proctest.Eventually(t, "renewals while lead has not returned", func() bool {
		holder, renewed := lease(t, c, ns)
		if holder != "one" {
			t.Fatalf("%q holds the lease while one still works", holder)
		}
		return renewed.Sub(begin) > 5*time.Second
	})
	one.let <- struct{}{}
	<-stopped
	next(t, two.leads, "the second lead")
	if err := next(t, one.ended, "the end"); err != nil {
		t.Error(err)
	}
	if holder, _ := lease(t, c, ns); holder != "two" {
		t.Errorf("%q holds the lease, want two", holder)
	}
}

// TestOursAndKubernetesOwnCandidatesTakeTurns at one Lease: earlier versions contested
// by client-go's election.
func TestOursAndKubernetesOwnCandidatesTakeTurns(t *testing.T) {
	t.Parallel()
	c, ns := connect(t, ""), cluster.Namespace(t)
	client, err := coordinationv1client.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	var leading atomic.Int32
	leads := make(chan context.Context, 10)
	library := func() (stop func()) {
		return running(t, func(ctx context.Context) {
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: &resourcelock.LeaseLock{
					LeaseMeta: metav1.ObjectMeta{Namespace: ns, Name: "syncer"}, Client: client, LockConfig: resourcelock.ResourceLockConfig{Identity: "library"},
				},
				ReleaseOnCancel: true, LeaseDuration: 4 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(ctx context.Context) {
						if leading.Add(1) > 1 {
							t.Error("two lead")
						}
						leads <- ctx
					},
					OnStoppedLeading: func() { leading.Add(-1) },
				},
			})
		})
	}
	stop := library()
	next(t, leads, "the library's lead")
	ours := contest(t, c, ns, "ours", &leading)
	if got := next(t, ours.leader, "a leader"); got != "library" {
		t.Errorf("%q leads, want library", got)
	}
	if len(ours.leads) > 0 {
		t.Error("ours leads too")
	}
	stop()
	lead := next(t, ours.leads, "our lead")
	library()
	_, begin := lease(t, c, ns)
	proctest.Eventually(t, "renewals for longer than the lease lasts", func() bool {
		_, renewed := lease(t, c, ns)
		return renewed.Sub(begin) > 5*time.Second
	})
	if len(leads) > 0 {
		t.Error("the library leads too")
	}
	go ours.stop()
	<-lead.Done()
	ours.let <- struct{}{}
	next(t, leads, "the library's second lead")
}

func TestALeadEndsWhenTheLeaseCannotBeRenewed(t *testing.T) {
	c, ns := connect(t, ""), cluster.Namespace(t)
	var leading atomic.Int32
	one := contest(t, c, ns, "one", &leading)
	first := next(t, one.leads, "the first lead")
	cluster.PauseAPIServer(t)
	<-first.Done() // while nothing is answered
	cluster.ContinueAPIServer(t)
	one.let <- struct{}{}
	second := next(t, one.leads, "the second lead")

	cluster.PauseAPIServer(t)
	defer cluster.ContinueAPIServer(t)
	one.let <- struct{}{}
	one.stop() // does not wait for an answer for ever
	if second.Err() == nil {
		t.Error("the second lead was not told to end")
	}
}

func TestALeadThatReturnsEndsTheContest(t *testing.T) {
	t.Parallel()
	c, ns := connect(t, ""), cluster.Namespace(t)
	var leading atomic.Int32
	one := contest(t, c, ns, "one", &leading)
	one.let <- struct{}{}
	if err := next(t, one.ended, "the end"); err != nil {
		t.Error(err)
	}
	if holder, _ := lease(t, c, ns); holder != "" {
		t.Errorf("%q holds the lease, want nobody", holder)
	}
}

func TestWithoutRightsOneLeadsAloneUntilTheyAreGranted(t *testing.T) {
	t.Parallel()
	for name, verbs := range map[string][]string{"none": {"list"}, "no writes": {"get"}, "no create": {"get", "update"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := cluster.Namespace(t)
			c := connect(t, cluster.Token(t, ns, "app"))
			cluster.Bind(t, ns, "app", rules("leases", verbs...))
			var leading atomic.Int32
			one := contest(t, c, ns, "one", &leading)
			first := next(t, one.leads, "a lead without the lease")
			awaitError(t, one.remarks, "works without an election", "forbidden", ns+"/syncer")
			cluster.Bind(t, ns, "app", rules("leases", "get", "create", "update"))
			<-first.Done()
			one.let <- struct{}{}
			next(t, one.leads, "a lead with the lease")
			awaitError(t, one.errs)
			if holder, _ := lease(t, connect(t, ""), ns); holder != "one" {
				t.Errorf("%q holds the lease, want one", holder)
			}
		})
	}
}

// Who has seen another lead does not lead without the Lease.
func TestNobodyLeadsAloneBesideAnother(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	var leading atomic.Int32
	other := contest(t, connect(t, ""), ns, "other", &leading)
	next(t, other.leads, "a lead")
	c := connect(t, cluster.Token(t, ns, "app"))
	cluster.Bind(t, ns, "app", rules("leases", "get"))
	one := contest(t, c, ns, "one", &leading)
	for next(t, one.leader, "a leader") != "other" {
	}
	other.let <- struct{}{} // and the Lease is free
	for range 3 * 2 {       // refusals that would be enough
		awaitError(t, one.errs, "forbidden")
	}
	if len(one.leads) > 0 {
		t.Error("it leads")
	}
}

// awaitError waits for a report that has all the words, nil for none.
func awaitError(t *testing.T, from <-chan error, words ...string) {
	t.Helper()
	for {
		err := next(t, from, fmt.Sprintf("a report with %q", words))
		if len(words) == 0 && err == nil {
			return
		}
		if len(words) > 0 && err != nil && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(err.Error(), w) }) {
			return
		}
	}
}

func TestAnImpossibleElectionIsRefused(t *testing.T) {
	c := connect(t, "")
	for _, e := range []kube.Election{
		{Namespace: "default", Name: "x", Identity: "one", LeaseDuration: time.Second, RenewDeadline: time.Second},
		{Namespace: "default", Name: "x", Identity: "one", LeaseDuration: 1900 * time.Millisecond, RenewDeadline: 1200 * time.Millisecond, RetryPeriod: time.Millisecond},
		{Namespace: "default", Name: "x", Identity: ""},
	} {
		err := c.Elect(t.Context(), e, &candidate{t: t, leading: new(atomic.Int32)})
		if err == nil || !strings.Contains(fmt.Sprint(err), "leader election") {
			t.Errorf("%+v: error %v", e, err)
		}
	}
}

// TestOnlyALeaderWrites: neither before its term nor after it, whatever of what it
// began is still under way.
func TestOnlyALeaderWrites(t *testing.T) {
	c, ns := connect(t, ""), cluster.Namespace(t)
	create(t, secrets(t, ns), managed("s", nil))
	write := func() error {
		_, err := c.Core.Secrets(ns).Patch(t.Context(), "s", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{})
		return err
	}
	var leading atomic.Int32
	other := contest(t, connect(t, ""), ns, "other", &leading)
	next(t, other.leads, "the other's lead")
	one := contest(t, c, ns, "one", &leading)
	next(t, one.leader, "a leader")
	if err := write(); err == nil {
		t.Error("who does not lead writes")
	}
	other.let <- struct{}{}
	first := next(t, one.leads, "the lead")
	if err := write(); err != nil {
		t.Errorf("the leader does not write: %v", err)
	}
	cluster.PauseAPIServer(t)
	<-first.Done()
	begin := time.Now()
	for c.MayWrite() == nil && time.Since(begin) < deadline {
		time.Sleep(time.Millisecond)
	}
	cluster.ContinueAPIServer(t) // and the Lead has not returned
	if err := write(); err == nil {
		t.Error("after the term it writes")
	}
	one.let <- struct{}{}
}
