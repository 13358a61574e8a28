package kubetest_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var getOne = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"one"}, Verbs: []string{"get"}}

func TestBind(t *testing.T) {
	ns, elsewhere := cluster.Namespace(t), cluster.Namespace(t)
	client := core(t, cluster.ConfigFor(cluster.Token(t, ns, "app")))
	get := func(ns, name string) error {
		_, err := client.Secrets(ns).Get(t.Context(), name, metav1.GetOptions{})
		return err
	}
	if err := get(ns, "one"); !apierrors.IsForbidden(err) {
		t.Errorf("before Bind: %v", err)
	}
	unbind := cluster.Bind(t, ns, "app", getOne)
	if err := get(ns, "one"); !apierrors.IsNotFound(err) {
		t.Errorf("after Bind: %v; want that it is allowed and not there", err)
	}
	if err := get(ns, "two"); !apierrors.IsForbidden(err) {
		t.Errorf("another name: %v", err)
	}
	if err := get(elsewhere, "one"); !apierrors.IsForbidden(err) {
		t.Errorf("another namespace: %v", err)
	}
	unbind()
	if err := get(ns, "one"); !apierrors.IsForbidden(err) {
		t.Errorf("after unbind: %v", err)
	}
}

func TestBindAcrossNamespaces(t *testing.T) {
	home, ns := cluster.Namespace(t), cluster.Namespace(t)
	client := core(t, cluster.ConfigFor(cluster.Token(t, home, "app")))
	cluster.Bind(t, ns, home+"/app", getOne)
	for _, test := range []struct {
		ns   string
		want func(error) bool
	}{{ns, apierrors.IsNotFound}, {home, apierrors.IsForbidden}} {
		if _, err := client.Secrets(test.ns).Get(t.Context(), "one", metav1.GetOptions{}); !test.want(err) {
			t.Errorf("%s: %v", test.ns, err)
		}
	}
}

// Two Roles may allow the same: taking one away then changes nothing, and
// unbind does not wait for a change.
func TestUnbindOfWhatIsAllowedTwice(t *testing.T) {
	ns := cluster.Namespace(t)
	client := core(t, cluster.ConfigFor(cluster.Token(t, ns, "app")))
	cluster.Bind(t, ns, "app", getOne)
	cluster.Bind(t, ns, "app", getOne)()
	if _, err := client.Secrets(ns).Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
