package manifest_test

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/tool/manifest"
)

// The API server refuses a label that is no text.
func TestALabelMustBeText(t *testing.T) {
	for _, value := range []string{"true", "1", "[a]"} {
		_, err := manifest.Parse([]byte("kind: Secret\nmetadata:\n  name: s\n  labels: {conjur.org/managed-by-provider: " + value + "}\n"))
		const want = "Secret/s: line 4: the label conjur.org/managed-by-provider must be text; put it in quotes"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
}
