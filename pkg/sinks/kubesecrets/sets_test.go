package kubesecrets

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/targets"
)

// Whoever writes the annotation under another name than ours says nothing by it.
func TestOnlyOurAnnotationSaysWhatASecretShows(t *testing.T) {
	fields := metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{".":{},"f:` + targets.RotationAnnotation + `":{}}}}`)
	about := metav1.ObjectMeta{Annotations: map[string]string{targets.RotationAnnotation: `{"jwt":{"step":7}}`}}
	for manager, counts := range map[string]bool{targets.FieldManager: true, "kubectl": false, "": false} {
		about.ManagedFields = nil
		if manager != "" {
			about.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: fields}}
		}
		if got := SetsOf(about)["jwt"].Step == 7; got != counts {
			t.Errorf("written by %q it counts: %t", manager, got)
		}
	}
}
