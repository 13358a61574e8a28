package deploy_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/secretsync/syncer/test/deploy"
)

// TestOverlayMovesTheBase: the example of an overlay is a complete installation in its own
// namespace, and the API server accepts it.
func TestOverlayMovesTheBase(t *testing.T) {
	text, err := deploy.Kustomize(kustomizeDir + "/overlays/example")
	if err != nil {
		t.Fatal(err)
	}
	apiServer := deploy.Connect(t, cluster.Config())
	objects := deploy.Decode(t, text)
	kinds := map[string]*unstructured.Unstructured{}
	for _, o := range objects { // the namespace is first
		kinds[o.GetKind()] = o
		_, err := apiServer.Create(t.Context(), "", o, o.GetKind() != "Namespace")
		if err != nil && !apierrors.IsAlreadyExists(err) { // a shared control plane keeps the namespace
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		if ns := o.GetNamespace(); ns != "" && ns != "platform" {
			t.Errorf("%s %s is in namespace %s", o.GetKind(), o.GetName(), ns)
		}
	}
	if _, err := apiServer.Create(t.Context(), "platform", podOf(t, kinds["Deployment"]), true); err != nil {
		t.Error(err)
	}
	if got := field(t, kinds["ValidatingAdmissionPolicy"], "spec", "matchConditions"); !strings.Contains(got, `"system:serviceaccount:platform:syncer"`) {
		t.Errorf("the policy is for %s", got)
	}
	if got := field(t, kinds["RoleBinding"], "subjects"); !strings.Contains(got, "platform") {
		t.Errorf("the Role is bound to %s", got)
	}
	cfg := loadRelease(t, objects, nil)
	if cfg.Conjur.Account != "platform" || cfg.Kubernetes.Namespaces[0] != "platform" {
		t.Errorf("account %s, namespaces %v", cfg.Conjur.Account, cfg.Kubernetes.Namespaces)
	}
}

// field is one field of an object, as text.
func field(t *testing.T, o *unstructured.Unstructured, path ...string) string {
	t.Helper()
	list, found, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil || !found {
		t.Fatalf("%s %s has no %v: %v", o.GetKind(), o.GetName(), path, err)
	}
	var text strings.Builder
	for _, item := range list {
		for _, value := range item.(map[string]any) {
			text.WriteString(value.(string) + " ")
		}
	}
	return text.String()
}
