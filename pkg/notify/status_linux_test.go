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

// onFilesOf runs f with the rights of a user to files; this needs root.
func onFilesOf(t *testing.T, user int, f func()) {
	t.Helper()
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and ends with this goroutine
		if failed = unix.Setfsuid(user); failed == nil {
			f()
		}
	}()
	<-done
	must(t, failed)
}

// An init container may have run as another user than the sidecar does.
func TestAnotherUsersFileGetsANewTimestamp(t *testing.T) {
	status, dir := sticky(t)
	must(t, status.SetUpdated())
	name, long := filepath.Join(dir, notify.UpdatedFile), time.Now().Add(-time.Hour)
	must(t, os.Chtimes(name, long, long))
	var failed error
	onFilesOf(t, another, func() { failed = status.SetUpdated() })
	must(t, failed)
	if info, err := os.Stat(name); err != nil || !info.ModTime().After(long.Add(time.Minute)) {
		t.Errorf("%v (%v), want a new timestamp", info, err)
	}
}
