package kube

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/secretsync/syncer/pkg/targets"
)

func TestBoundsOfEvents(t *testing.T) {
	for less := -1; less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			r := (&Client{}).NewRecorder("syncer", nil)
			warn := func(name, message string) int {
				r.Event(SecretReference("n", name, ""), corev1.EventTypeWarning, "SyncFailed", message)
				return len(said(r))
			}
			warn("db", "no route")
			time.Sleep(repeatAfter + time.Duration(less))
			if r.prune(time.Now()); len(r.said) > 0 != (less < 0) {
				t.Errorf("after the bound%+d, %d warnings are remembered", less, len(r.said))
			}
			if repeated := warn("db", "no route") > 0; repeated != (less >= 0) {
				t.Errorf("the warning is repeated after the bound%+d: %t", less, repeated)
			}
			for i := range maxWaiting + less {
				r.Event(SecretReference("n", fmt.Sprint(i), ""), corev1.EventTypeWarning, "SyncFailed", "no route")
			}
			if lost := int(r.lost.Load()); lost != max(less, 0) {
				t.Errorf("of the bound%+d of Events, %d are lost", less, lost)
			}
			said(r)
			r.Event(SecretReference("n", "db", ""), corev1.EventTypeWarning, "SyncFailed", strings.Repeat("x", 1024+less))
			if message := (<-r.waiting).Message; len(message) != min(1024+less, 1024) || strings.HasSuffix(message, "…") != (less > 0) {
				t.Errorf("of a message of the bound%+d, %d bytes are sent", less, len(message))
			}
		})
		synctest.Test(t, func(t *testing.T) { // what is known of namespaces that have been quiet
			r := (&Client{}).NewRecorder("syncer", nil)
			r.Event(SecretReference("quiet", "db", ""), corev1.EventTypeNormal, "Synced", "2 keys")
			time.Sleep(repeatAfter/4 + time.Duration(less))
			r.Event(SecretReference("n", "db", ""), corev1.EventTypeNormal, "Synced", "2 keys")
			if n, want := len(r.budget.namespaces), 2-min(less+1, 1); n != want {
				t.Errorf("%d budgets after a quarter of an hour%+d, want %d", n, less, want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		for less := -1; less <= 1; less++ {
			var one, all eventBudget
			ofOne, ofAll := 0, 0
			for range 25 + less {
				if one.allow("n", "Synced") {
					ofOne++
				}
			}
			for i := range 100 + less {
				if all.allow(fmt.Sprint(i), "Synced") {
					ofAll++
				}
			}
			if ofOne != min(25+less, 25) || ofAll != min(100+less, 100) {
				t.Errorf("at once, %d Events of one namespace and %d of all are allowed", ofOne, ofAll)
			}
		}
	})
	for less := -1; less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			var b eventBudget
			b.allow("n", "Synced")
			time.Sleep(time.Second/namespacePerSecond + time.Duration(less)*time.Millisecond)
			b.prune()
			if kept := len(b.namespaces) > 0; kept != (less < 0) {
				t.Errorf("a budget is kept when it is whole%+d ms: %t", less, kept)
			}
		})
	}
}

func TestBoundsOfLeases(t *testing.T) {
	for less := time.Duration(-1); less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			l := &lease{Election: Election{Identity: "one"}, seen: time.Now(), live: &coordinationv1.Lease{
				Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("other"), LeaseDurationSeconds: ptr.To(int32(15))},
			}}
			time.Sleep(15*time.Second + less)
			if may := l.otherMayLead(); may != (less < 0) {
				t.Errorf("after the duration%+d, another may lead: %t", less, may)
			}
			claim := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l", Annotations: map[string]string{selectorAnnotation: "team"}}}
			claim.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now()))
			time.Sleep(10*time.Minute + less)
			if claims := claimsOf([]coordinationv1.Lease{claim}); len(claims) > 0 != (less < 0) {
				t.Errorf("%d claims count after ten minutes%+d", len(claims), less)
			}
		})
	}
	const second = time.Second
	for _, c := range []struct {
		duration, deadline, retry time.Duration
		ok                        bool
	}{
		{10 * second, 10*second - 1, second, true}, {10 * second, 10 * second, second, false}, {10*second + 1, 10 * second, second, false}, {11 * second, 10 * second, second, true},
		{10 * second, 2*second - 1, second, false}, {10 * second, 2 * second, second, true}, {10 * second, 2*second + 1, second, true},
		{10 * second, 2 * second, -1, false}, {10 * second, 4 * second, 0, true}, {10 * second, 4*second - 1, 0, false}, {0, 0, 0, true},
		{0, 15*second - 1, 0, true}, {0, 15 * second, 0, false}, {10 * second, 0, 0, false}, {11 * second, 0, 5 * second, true}, {11 * second, 0, 5*second + 1, false},
	} {
		e := Election{Identity: "one", LeaseDuration: c.duration, RenewDeadline: c.deadline, RetryPeriod: c.retry}
		e.complete()
		if err := e.validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
	var r refusals
	forbidden := apierrors.NewForbidden(coordinationv1.Resource("leases"), "l", nil)
	for n := 1; n <= 3; n++ {
		if r.recordOutcome(forbidden, false); r.enough() != (n >= 2) {
			t.Errorf("%d refusals are enough: %t", n, r.enough())
		}
	}
	r.recordOutcome(nil, false) // there is no Lease
	if !r.enough() {
		t.Error("a missing Lease ends the refusals")
	}
	if r.recordOutcome(http.ErrHandlerTimeout, false); r.enough() {
		t.Error("refusals with another failure in between are enough")
	}
	r.recordOutcome(nil, true)
	r.recordOutcome(forbidden, false)
	if r.recordOutcome(forbidden, false); r.enough() {
		t.Error("refusals to one that has the right are enough")
	}
}

func TestBoundsOfDefinitions(t *testing.T) {
	for less := -1; less <= 1; less++ {
		s := strip(&corev1.Secret{Data: map[string][]byte{targets.ConjurMapKey: make([]byte, targets.MaxDefinition+less)}})
		if oversize, _ := s.Dropped(); (oversize > 0) != (less > 0) {
			t.Errorf("the bound%+d: %d bytes are too many", less, oversize)
		}
		var r room
		first, second := cache.NewObjectName("n", "first"), cache.NewObjectName("n", "second")
		for range 2 { // a repetition takes no room
			if !r.recordSize(first, 60, 100) || r.recordSize(second, 40+less, 100) != (less <= 0) {
				t.Errorf("in a namespace, the bound%+d", less)
			}
		}
		r.recordSize(first, 0, 100)
		if !r.recordSize(second, 100, 100) || !r.recordSize(cache.NewObjectName("m", "third"), 100, 100) || !r.recordSize(first, 1000, 0) {
			t.Error("what is gone takes room, or another namespace has none, or no limit is one")
		}
		for _, name := range []cache.ObjectName{first, second, cache.NewObjectName("m", "third")} {
			r.recordSize(name, 0, 100)
		}
		if len(r.sizes)+len(r.used) > 0 {
			t.Errorf("left: %v, %v", r.sizes, r.used)
		}
	}
}

func TestBoundsOfIntervals(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{
		-1: longestInterval, 0: longestInterval, 1: 1, longestInterval - 1: longestInterval - 1, longestInterval: longestInterval, longestInterval + 1: longestInterval,
	} {
		if w := (&Client{}).WatchSecrets(Selection{Interval: given}, nil, &puts{}); w.Interval != want || w.source.interval != want {
			t.Errorf("%v becomes %v, want %v", given, w.Interval, want)
		}
	}
}

// TestBoundsOfStatuses: a list without a stream may help unless the server fails or is busy.
func TestBoundsOfStatuses(t *testing.T) {
	for code, want := range map[int32]bool{400: true, 401: false, 403: true, 429: false, 499: true, 500: false, 501: false} {
		reason := map[int32]metav1.StatusReason{401: metav1.StatusReasonUnauthorized, 429: metav1.StatusReasonTooManyRequests}[code]
		if got := unstreamed(&apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason}}); got != want {
			t.Errorf("%d: %t", code, got)
		}
	}
	if unstreamed(http.ErrHandlerTimeout) {
		t.Error("without an answer")
	}
}
