package notify_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/secretsync/syncer/pkg/notify"
)

func TestTemplateAnnotationsAreValidAndDistinct(t *testing.T) {
	seen := map[string]string{}
	for _, secret := range []string{
		"a", "db-credentials", "with.dots", strings.Repeat("a", 47), strings.Repeat("a", 48), strings.Repeat("a", 253),
		strings.Repeat("a", 252) + "b", strings.Repeat("a.", 126) + "a", strings.Repeat("a", 36) + "." + strings.Repeat("b", 100),
	} {
		name := notify.TemplateAnnotation(secret)
		if faults := validation.IsQualifiedName(name); len(faults) > 0 {
			t.Errorf("the annotation for %q is not valid: %q", secret, faults)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q have the same annotation", secret, other)
		}
		seen[name] = secret
	}
	// What was noted by an earlier version must be found by a later one.
	for secret, want := range map[string]string{
		"db":                    "conjur.org/secret-revision.db",
		strings.Repeat("a", 60): "conjur.org/secret-revision." + strings.Repeat("a", 36) + "-11ee391211",
	} {
		if got := notify.TemplateAnnotation(secret); got != want {
			t.Errorf("the annotation for %q is %q, want %q", secret, got, want)
		}
	}
}

func TestRevisionsAreRead(t *testing.T) {
	r, err := notify.ParseRevision("12", "2026-01-31T12:00:00Z")
	if want := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC); err != nil || r.Number != 12 || !r.At.Equal(want) {
		t.Errorf("%+v (%v)", r, err)
	}
	for _, bad := range [][2]string{{"", "2026-01-31T12:00:00Z"}, {"x", "2026-01-31T12:00:00Z"}, {"1", ""}, {"1", "now"}} {
		if _, err := notify.ParseRevision(bad[0], bad[1]); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
