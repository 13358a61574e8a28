package targets_test

import (
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

func TestDefaultFileName(t *testing.T) {
	for format, want := range map[targets.Format]string{
		targets.FormatProperties: "a.b.properties",
		targets.FormatTemplate:   "a.b.out",
		targets.FormatDirectory:  "a.b",
	} {
		if got := targets.DefaultFileName("a.b", format); got != want {
			t.Errorf("%s: got %s", format, got)
		}
	}
}
