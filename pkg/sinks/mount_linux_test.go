package sinks

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/pkg/targets"
)

// One volume may be mounted above the secrets folder, which is made there, and
// for all to read: a tmpfs, or a folder of the node that may lie on the same
// file system as the container's root folder.
func TestSecretsFolderIsMadeInAVolume(t *testing.T) {
	setUmask(t, 0o077)
	t.Run("tmpfs", func(t *testing.T) { testMadeInVolume(t, "tmpfs", "tmpfs", 0) })
	t.Run("bind", func(t *testing.T) { testMadeInVolume(t, t.TempDir(), "", unix.MS_BIND) })
	if isMount("/") {
		t.Error("the root folder counts as a volume")
	}
}

func testMadeInVolume(t *testing.T, source, kind string, flags uintptr) {
	volume := t.TempDir()
	if err := unix.Mount(source, volume, kind, flags, ""); err != nil {
		t.Fatalf("mounting a volume (this test needs root): %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(volume, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	files, target := newKeeper(filepath.Join(volume, "secrets"), nil), fileTarget("a", 0o640)
	for range 2 { // an application that owns the volume may remove it
		if err := files.Clean(t.Context(), []*targets.Target{target}); err != nil {
			t.Error(err)
		}
		if got := read(t, files, target); got.Parts != nil || got.Stale {
			t.Errorf("without the folder Read gives %v", got)
		}
		apply(t, files, target, removal(WholeFile))
		expectTree(t, volume)
		apply(t, files, target, rewrite(WholeFile, "text"))
		expectTree(t, volume, "drwxr-xr-x secrets", "-rw-r----- secrets/a")
		if err := os.RemoveAll(filepath.Join(volume, "secrets")); err != nil {
			t.Fatal(err)
		}
	}
	below := newKeeper(filepath.Join(volume, "app", "secrets"), nil)
	if err := below.Apply(t.Context(), target, rewrite(WholeFile, "text")); err == nil {
		t.Error("a folder was made that is not right below the volume")
	}
}
