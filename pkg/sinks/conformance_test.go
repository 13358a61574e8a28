package sinks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sinks/sinkstest"
	"github.com/secretsync/syncer/pkg/targets"
)

func TestFileConformance(t *testing.T) {
	sinkstest.Run(t, func(t *testing.T) sinkstest.Fixture {
		dir := t.TempDir()
		return sinkstest.Fixture{
			Sink:    sinks.NewFiles(dir, nil),
			Target:  &targets.Target{Key: "file/a", Format: targets.FormatYAML, File: targets.File{Path: "app/a.yaml", Mode: 0o640}},
			Names:   []string{sinks.WholeFile},
			Version: func() string { return version(t, filepath.Join(dir, "app/a.yaml")) },
		}
	})
}

func TestDirectoryConformance(t *testing.T) {
	sinkstest.Run(t, func(t *testing.T) sinkstest.Fixture {
		dir := t.TempDir()
		return sinkstest.Fixture{
			Sink:   sinks.NewFiles(dir, nil),
			Target: &targets.Target{Key: "file/a", Format: targets.FormatDirectory, File: targets.File{Path: "app/a", Mode: 0o640}},
			Names:  []string{"password", "url", "user"},
			Version: func() string {
				return version(t, filepath.Join(dir, "app/a/..data/password"))
			},
		}
	})
}

func version(t *testing.T, name string) string {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(info.ModTime().UnixNano(), " ", info.Sys().(*syscall.Stat_t).Ino)
}
