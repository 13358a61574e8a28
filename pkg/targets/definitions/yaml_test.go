package definitions_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/secretsync/syncer/pkg/targets/definitions"
)

func TestYAMLError(t *testing.T) {
	const tab = "a tab begins the line"
	for text, want := range map[string]string{
		"\ta: 1\n":                       "line 1: " + tab,
		"a:\n\tb: 1\n":                   "line 2: " + tab,
		"a:\n  b: 1\n\tc: 2\n":           "line 3: " + tab,
		"a:\n  b: 1\n  \tc: 2\n":         "line 3: " + tab,
		"a: |\n  x\n  \ty\nb:\n\tc: 1\n": "line 5: " + tab,
		"a: 1\n---\nb:\n\tc: 1\n":        "line 4: " + tab,
		"a: @x\n":                        "found character that cannot start any token",
		"a: |\n  x\n  \ty\nb: `\n":       "line 4: found character that cannot start any token",
		"a: [\n":                         "line 1: did not find expected node content",
		"a: 1\nb\n":                      "line 2: could not find expected ':'",
	} {
		var err error
		for decoder := yaml.NewDecoder(strings.NewReader(text)); err == nil; {
			err = decoder.Decode(new(any))
		}
		if got := definitions.YAMLError([]byte(text), err).Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
