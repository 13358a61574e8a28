package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestOneVersionEverywhere: the binary, the chart, the manifests and the documentation
// name the same version.
func TestOneVersionEverywhere(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(`(?m)(?:secretsync/syncer:|^version: |^appVersion: |newTag: |app\.kubernetes\.io/version: |helm\.sh/chart: syncer-)"?([0-9][\w.+-]*)`)
	naming := map[string]int{} // how often a file names the version
	for _, root := range []string{"../../README.md", "../../docs", "../../deploy"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range pattern.FindAllSubmatch(text, -1) {
				naming[path]++
				if string(m[1]) != release {
					t.Errorf("%s names %s, and the binary is %s", path, m[1], release)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if naming["../../deploy/chart/syncer/Chart.yaml"] != 2 || len(naming) < 12 {
		t.Errorf("these files name a version: %v", naming)
	}
}
