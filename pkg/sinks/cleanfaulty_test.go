package sinks

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/targets"
)

// A target that the configuration reports as invalid may lack its path and mode.
// It is an error of its sync, and none of the cleaning.
func TestCleanLeavesOutInvalidTargets(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, safefile.TempName()), nil, 0o600))
	noPath := &targets.Target{Key: targets.FileKey("x"), Group: "x", Faults: []string{"an unknown format"}}
	noMode := &targets.Target{Key: targets.FileKey("y"), Group: "y", Faults: []string{"invalid permissions"}, File: targets.File{Path: "y/z"}}
	must(t, os.Mkdir(filepath.Join(dir, "y"), 0o755))
	if err := newKeeper(dir, nil).Clean(t.Context(), []*targets.Target{noPath, noMode, fileTarget("b", 0o600)}); err != nil {
		t.Error(err)
	}
	expectTree(t, dir, "drwxr-xr-x y")
}
