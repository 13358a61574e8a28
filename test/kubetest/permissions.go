package kubetest

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/proctest"
)

// Bind gives the service account sa a Role with these rules in namespace ns,
// and returns when the API server goes by it. A service account of another
// namespace is written "NAMESPACE/NAME". The function returned takes the Role
// away again, and returns when that has taken effect; it need not be called.
func (cp *ControlPlane) Bind(t testing.TB, ns, sa string, rules ...rbacv1.PolicyRule) (unbind func()) {
	t.Helper()
	home, name, other := strings.Cut(sa, "/")
	if !other {
		home, name = ns, sa
	}
	// The authorizer learns of a Role with all its rules at once. So one rule tells of the
	// others: that which only this Role has.
	mark := rbacv1.PolicyRule{APIGroups: []string{"kubetest"}, Resources: []string{"marks"}, ResourceNames: []string{rand.Text()}, Verbs: []string{"get"}}
	role, err := cp.rbac.Roles(ns).Create(lasting(t), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Rules:      append(slices.Clone(rules), mark),
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding, err := cp.rbac.RoleBindings(ns).Create(lasting(t), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	marked := reviews(ns, UserName(home, name), []rbacv1.PolicyRule{mark})
	cp.awaitAll(t, marked, true)
	return func() {
		t.Helper()
		if err := cp.rbac.RoleBindings(ns).Delete(lasting(t), binding.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		cp.awaitAll(t, marked, false)
	}
}

// Await waits until the API server allows the service account sa of the
// namespace ns all requests of the rules.
func (cp *ControlPlane) Await(t testing.TB, ns, sa string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	cp.awaitAll(t, reviews(ns, UserName(ns, sa), rules), true)
}

// UserName is the name under which a service account is authenticated, and
// thus the one of its Calls.
func UserName(ns, sa string) string { return "system:serviceaccount:" + ns + ":" + sa }

// reviews asks for each thing that the rules allow.
func reviews(ns, user string, rules []rbacv1.PolicyRule) (all []*authorizationv1.SubjectAccessReview) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resource, subresource, _ := strings.Cut(resource, "/")
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all = append(all, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
							User: user,
							ResourceAttributes: &authorizationv1.ResourceAttributes{
								Namespace: ns, Group: group, Resource: resource, Subresource: subresource, Verb: verb, Name: name,
							},
						}})
					}
				}
			}
		}
	}
	return all
}

// awaitAll waits until all reviews are answered thus: the authorizer learns of
// Roles by a watch, a little later than they are written.
func (cp *ControlPlane) awaitAll(t testing.TB, all []*authorizationv1.SubjectAccessReview, allowed bool) {
	t.Helper()
	proctest.EventuallyNoError(t, fmt.Sprintf("allowed=%v for the Role's rules", allowed), func() error {
		for len(all) > 0 {
			answer, err := cp.authorization.SubjectAccessReviews().Create(lasting(t), all[0], metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if answer.Status.Allowed != allowed {
				return fmt.Errorf("not yet: %v", all[0].Spec.ResourceAttributes)
			}
			all = all[1:]
		}
		return nil
	})
}
