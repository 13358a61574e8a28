package config_test

import (
	"fmt"
	"testing"

	"github.com/secretsync/syncer/config"
)

// BenchmarkLoad reads the annotations of 400 groups of 5 secrets each.
func BenchmarkLoad(b *testing.B) {
	annotations := dict{"secrets-destination": "file", "container-mode": "sidecar"}
	for g := range 400 {
		list := ""
		for v := range 5 {
			list += fmt.Sprintf("- alias%d: app/group%d/variable%d\n", v, g, v)
		}
		annotations[fmt.Sprintf("conjur-secrets.group%d", g)] = list
		annotations[fmt.Sprintf("secret-file-format.group%d", g)] = "json"
	}
	src := sources(b, annotations, connection)
	for b.Loop() {
		if _, _, err := config.Load(src.Read()); err != nil {
			b.Fatal(err)
		}
	}
}
