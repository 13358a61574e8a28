package notify_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/pkg/notify"
)

// A container may have the folder read-only: then no probe of it succeeds in
// taking what is there, but none fails for what is not.
func TestNothingIsTakenFromAReadOnlyFolder(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("mounting a tmpfs (this test needs root): %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	remount := func(flags uintptr) { t.Helper(); must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|flags, "")) }
	status := notify.OpenStatus(dir)

	remount(unix.MS_RDONLY)
	if taken, err := status.TakeUpdated(); taken || err != nil {
		t.Errorf("without the file: %v, %v", taken, err)
	}
	remount(0)
	must(t, status.SetUpdated())
	remount(unix.MS_RDONLY)
	if taken, err := status.TakeUpdated(); taken || err == nil {
		t.Errorf("with the file: %v, %v, want an error", taken, err)
	}
}

// An init container may have run as another user than the sidecar does.
func TestAnotherUsersFileGetsANewTimestamp(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	status := notify.OpenStatus(dir)
	must(t, status.SetUpdated())
	name, long := filepath.Join(dir, notify.UpdatedFile), time.Now().Add(-time.Hour)
	must(t, os.Chtimes(name, long, long))
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and ends with this goroutine
		if err := unix.Setfsuid(12345); err != nil {
			done <- err
			return
		}
		done <- status.SetUpdated()
	}()
	must(t, <-done)
	if info, err := os.Stat(name); err != nil || !info.ModTime().After(long.Add(time.Minute)) {
		t.Errorf("%v (%v), want a new timestamp", info, err)
	}
}
