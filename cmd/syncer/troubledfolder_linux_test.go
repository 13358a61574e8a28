package main

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// mount puts a file system of its own into the place of a folder, as a Pod's
// volume is; it needs root.
func (w *world) mount(folder, size string) {
	w.t.Helper()
	dir := w.path(folder)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		w.t.Fatalf("mounting a tmpfs (this test needs root): %v", err)
	}
	w.t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			w.t.Error(err)
		}
	})
}

// TestTroubledFolder: what goes wrong with the secrets folder is told, leaves
// the last whole file where that is possible, and is overcome by itself as soon
// as it is mended.
func TestTroubledFolder(t *testing.T) {
	troubles := []struct {
		name         string
		begin, mend  func(w *world) error
		told         string // in the log
		fileIsBehind bool   // it stays readable as it was
	}{
		{
			name:  "full",
			begin: func(w *world) error { return os.WriteFile(w.path("secrets", "filler"), fill(w), 0o600) },
			mend:  func(w *world) error { return os.Remove(w.path("secrets", "filler")) },
			told:  "no space left on device", fileIsBehind: true,
		},
		{
			name: "read-only",
			begin: func(w *world) error {
				return unix.Mount("", w.path("secrets"), "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
			},
			mend: func(w *world) error { return unix.Mount("", w.path("secrets"), "", unix.MS_REMOUNT, "") },
			told: "read-only file system", fileIsBehind: true,
		},
		{
			name:  "missing",
			begin: func(w *world) error { return unix.Unmount(w.path("secrets"), 0) },
			mend:  func(w *world) error { return unix.Mount("tmpfs", w.path("secrets"), "tmpfs", 0, "size=1m") },
			told:  "",
		},
		{
			name:  "another's",
			begin: func(w *world) error { return os.Chown(w.path("secrets", "db.json"), 12345, 12345) },
			mend:  func(*world) error { return nil },
		},
	}
	for _, trouble := range troubles {
		t.Run(trouble.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.mount("secrets", "256k")
			w.group("db", "json", "db/password")
			p := w.start()
			w.awaitProvided()
			before := w.file("db.json")

			if err := trouble.begin(w); err != nil {
				t.Fatal(err)
			}
			w.renew("db/password")
			if trouble.told != "" {
				eventually(t, "a word about it", func() bool { return strings.Contains(p.Log(), trouble.told) })
			}
			if trouble.fileIsBehind && w.file("db.json") != before {
				t.Error("the file is neither as before nor as wanted")
			}
			if err := trouble.mend(w); err != nil {
				t.Fatal(err)
			}
			w.await("db.json", `{"password":"`+w.value["db/password"]+`"}`)
			info, err := os.Stat(w.path("secrets", "db.json"))
			if err != nil {
				t.Fatal(err)
			}
			if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Getuid() {
				t.Errorf("the file belongs to user %d", owner)
			}
			if left, err := os.ReadDir(w.path("secrets")); err != nil || len(left) != 1 {
				t.Errorf("left in the folder: %v %v", left, err)
			}
			p.Stop()
		})
	}
}

// fill is all that a file system still takes.
func fill(w *world) []byte {
	w.t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(w.path("secrets"), &fs); err != nil {
		w.t.Fatal(err)
	}
	return bytes.Repeat([]byte{'x'}, int(fs.Bavail)*int(fs.Bsize))
}
