package kube_test

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/test/proctest"
)

// The oldest Lease whose selector matches has a namespace, also with equal selectors; one
// that was not renewed for ten minutes has none.
func TestTheOldestClaimOwnsANamespace(t *testing.T) {
	c, ns := connect(t, ""), cluster.Namespace(t)
	leases := c.Coordination.Leases(ns)
	claim := func(name, selector string, renewed time.Duration) *coordinationv1.Lease {
		t.Helper()
		at := metav1.NewMicroTime(time.Now().Add(-renewed))
		made, err := leases.Create(t.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"conjur.org/namespace-selector": selector}},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &at},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	owner := func(want string, labels map[string]string) {
		t.Helper()
		claims, err := c.Claims(t.Context(), ns)
		if err != nil {
			t.Fatal(err)
		}
		if got := kube.Owner(claims, labels); got != want {
			t.Errorf("the labels %v belong to %q, want %q", labels, got, want)
		}
	}
	shop := map[string]string{"team": "shop"}
	owner("", shop)
	first := claim("z-first", "team=shop", time.Minute)
	claim("a-gone", "team", 11*time.Minute)
	claim("a-broken", "team in (", 0)
	proctest.Eventually(t, "a younger Lease, by the server's clock of seconds", func() bool {
		younger := claim("b-equal", "team=shop", 0)
		if younger.CreationTimestamp.After(first.CreationTimestamp.Time) {
			return true
		}
		if err := leases.Delete(t.Context(), "b-equal", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		return false
	})
	owner("z-first", shop)
	owner("", map[string]string{"team": "bank"})
	owner("", nil)
	if err := leases.Delete(t.Context(), "z-first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	owner("b-equal", shop)
	claim("all", "team", 0)
	owner("all", map[string]string{"team": "bank"})
}
