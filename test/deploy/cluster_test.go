package deploy_test

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/secretsync/syncer/test/proctest"
)

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
	proctest.Eventually(t, what, func() bool {
		answer, err := client.SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status.Allowed == want
	})
}
