package render

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// Each format that an error names instead can hold the value, and so can a template.
func TestFormatsInsteadHoldTheValue(t *testing.T) {
	named := regexp.MustCompile(`; use format (.*), or a template that writes it in base64 with "b64enc"`)
	for _, value := range []string{"\x00", "\xff", "\x00\xff", "a\n", "a\n\xff", `"a"`, `'a"`, "'a\"\xff", strings.Repeat("a", 70000)} {
		refused := 0
		for _, format := range allFormats() {
			of, items := target(format, "k", value)
			_, err := Render(of, "", items)
			if err == nil {
				continue
			}
			refused++
			found := named.FindStringSubmatch(err.Error())
			if found == nil {
				t.Errorf("format %s, value %.20q: %v names no format instead", format, value, err)
				continue
			}
			others := regexp.MustCompile(`, | or `).Split(found[1], -1)
			if !slices.Contains(others, string(targets.FormatDirectory)) {
				t.Errorf("format %s, value %.20q: %v does not name the format that holds all", format, value, err)
			}
			for _, other := range others {
				instead, items := target(targets.Format(other), "k", value)
				if _, again := Render(instead, "", items); again != nil {
					t.Errorf("format %s, value %.20q: %v, but then: %v", format, value, err, again)
				}
			}
		}
		if refused == 0 {
			t.Errorf("every format holds %.20q", value)
		}
	}
}
