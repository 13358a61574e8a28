package deploy_test

import (
	"context"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// patience is for what takes a moment: what is written about rights and
// policies comes into force by a watch.
const patience = 2 * time.Minute

// eventually repeats until it is true.
func eventually(t *testing.T, what string, done func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

var groups = map[string]string{"leases": "coordination.k8s.io"}

// eventuallyMay waits until a user may do something, or may not.
func eventuallyMay(t *testing.T, config *rest.Config, namespace, verb, resource, name string, want bool) {
	t.Helper()
	client, err := authorizationv1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: groups[resource], Resource: resource, Name: name,
		},
	}}
	what := verb + " " + resource + " " + namespace + "/" + name
	eventually(t, what, func(ctx context.Context) bool {
		answer, err := client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status.Allowed == want
	})
}
