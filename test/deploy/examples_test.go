package deploy_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/deploy"
)

// TestTheExamplesAreApplied: the API server accepts each object and each Pod, in
// namespaces that enforce the restricted profile.
func TestTheExamplesAreApplied(t *testing.T) {
	objects := deploy.Connect(t, cluster.Config())
	files, err := filepath.Glob("../../deploy/examples/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := strings.NewReplacer("namespace: shop", "namespace: "+restricted(t), "namespace: platform", "namespace: "+restricted(t)).Replace(string(readFile(t, file)))
			pods := 0
			for _, o := range deploy.Decode(t, []byte(text)) {
				if _, err := objects.Create(t.Context(), "", o, false); err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
				}
				if pod := podOf(t, o); pod != nil {
					pods++
					if _, err := objects.Create(t.Context(), o.GetNamespace(), pod, true); err != nil {
						t.Errorf("a Pod of %s %s: %v", o.GetKind(), o.GetName(), err)
					}
				}
			}
			if pods == 0 {
				t.Error("there is no workload")
			}
		})
	}
}
