package sinks

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOnlyAFolderInMemoryIsNotOnDisk, also before it is made, and what is kept in
// it is counted.
func TestOnlyAFolderInMemoryIsNotOnDisk(t *testing.T) {
	volume := t.TempDir()
	if !NewFiles(volume, nil).OnDisk() {
		t.Error("a folder on the disk is not")
	}
	if err := unix.Mount("tmpfs", volume, "tmpfs", 0, ""); err != nil {
		t.Fatalf("mounting a volume (this test needs root): %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(volume, unix.MNT_DETACH)) })
	files := newKeeper(filepath.Join(volume, "secrets"), nil)
	files.Limit(1000)
	if files.OnDisk() {
		t.Error("a volume in memory is on the disk before the folder is made")
	}
	kept := func(want int64) {
		t.Helper()
		if bytes, limit := files.Kept(); bytes != want || limit != 1000 {
			t.Errorf("%d of %d bytes, want %d of 1000", bytes, limit, want)
		}
	}
	kept(0)
	a, b := fileTarget("a", 0o640), fileTarget("b", 0o640)
	b.Key = "file/b"
	apply(t, files, a, rewrite(WholeFile, "12345"))
	apply(t, files, b, rewrite(WholeFile, "123"))
	kept(8)
	apply(t, files, a, removal(WholeFile))
	kept(3)
	if files.OnDisk() {
		t.Error("a folder in memory is on the disk")
	}
	if NewFiles(filepath.Join(volume, "no", "folder"), nil).OnDisk() {
		t.Error("what cannot be told is said")
	}
}
