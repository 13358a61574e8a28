package main

import (
	"os"
	"regexp"
	"testing"
)

// TestOneVersionEverywhere: the binary, the chart, the manifests and the documentation
// name the same version.
func TestOneVersionEverywhere(t *testing.T) {
	t.Parallel()
	image := regexp.MustCompile(`secretsync/syncer:([0-9][\w.-]*)`)
	for path, pattern := range map[string]*regexp.Regexp{
		"../../deploy/chart/syncer/Chart.yaml":            regexp.MustCompile(`(?m)^(?:appVersion|version): "?([^"\n]+)"?$`),
		"../../deploy/kustomize/base/syncer.yaml":         image,
		"../../deploy/examples/node-agent/daemonset.yaml": image,
		"../../deploy/examples/sidecar.yaml":              image,
		"../../deploy/examples/init.yaml":                 image,
		"../../deploy/examples/job.yaml":                  image,
		"../../deploy/examples/standalone.yaml":           image,
		"../../deploy/examples/rotate-postgresql.yaml":    image,
		"../../README.md":                                 image,
		"../../docs/install.md":                           image,
		"../../docs/commands.md":                          image,
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := pattern.FindAllSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no version", path)
		}
		for _, m := range found {
			if string(m[1]) != release {
				t.Errorf("%s names %s, and the binary is %s", path, m[1], release)
			}
		}
	}
}
