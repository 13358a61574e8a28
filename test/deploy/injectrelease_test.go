package deploy_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/test/deploy"
)

// labelNamespace sets the release's label of its namespace.
func (i injection) labelNamespace(t *testing.T, value string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{i.label: value}}})
	if err == nil {
		_, err = cluster.Core.Namespaces().Patch(t.Context(), i.namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSyncersOwnPodsStartInALabelledNamespace: they do not get Syncer a second time.
func TestSyncersOwnPodsStartInALabelledNamespace(t *testing.T) {
	for _, shape := range []string{"deployment", "job", "example"} {
		i := inject(t, "{shape: "+shape+", inject: {namespaces: true}}")
		i.labelNamespace(t, "true")
		unlabelled := i.pod()
		delete(unlabelled.Labels, i.label)
		i.awaitSyncer(t, unlabelled)
		for _, o := range i.release(t, "r").Objects(t) {
			pod := podOf(t, o)
			if pod == nil {
				continue
			}
			made, err := deploy.Connect(t, cluster.Config()).Create(t.Context(), i.namespace, pod, true)
			if err != nil {
				t.Errorf("%s: %v", shape, err)
				continue
			}
			want, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
			got, _, _ := unstructured.NestedSlice(made.Object, "spec", "volumes")
			if len(got) != len(want) {
				t.Errorf("%s: %d volumes, want %d", shape, len(got), len(want))
			}
		}
	}
}
