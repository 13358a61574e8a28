package render

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

func TestBase64(t *testing.T) {
	for _, c := range []struct {
		name, value, want string
		warns             bool
	}{
		{"text", "c2VjcmV0", "secret", false},
		{"a NUL at the end is kept", "3q2+7wA=", "\xde\xad\xbe\xef\x00", false},
		{"empty", "", "", false},
		{"line breaks are allowed", "c2Vj\r\ncmV0\n", "secret", false},
		{"not base64", "canary!", "canary!", true},
		{"no padding", "c2VjcmV", "c2VjcmV", true},
		{"the alphabet of URLs", "3q2-7wA=", "3q2-7wA=", true},
	} {
		target, items := target(targets.FormatDirectory, "k", c.value)
		target.Entries[0].ContentType = targets.ContentBase64
		result, err := Render(target, "", items)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := string(result.Parts["k"].Bytes()); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if warns := len(result.Warnings) == 1; warns != c.warns {
			t.Errorf("%s: warnings %q", c.name, result.Warnings)
		}
		for _, warning := range result.Warnings {
			if !strings.Contains(warning, `alias "k"`) || strings.Contains(warning, "canary") {
				t.Errorf("%s: the warning must name the alias and no value: %s", c.name, warning)
			}
		}
	}
}

// An empty or unknown content type is text.
func TestOtherContentTypes(t *testing.T) {
	for _, contentType := range []targets.ContentType{"", "gzip"} {
		target, items := target(targets.FormatDirectory, "k", "c2VjcmV0")
		target.Entries[0].ContentType = contentType
		result, err := Render(target, "", items)
		if err != nil || string(result.Parts["k"].Bytes()) != "c2VjcmV0" || result.Warnings != nil {
			t.Errorf("content type %q is not taken as text", contentType)
		}
	}
}
