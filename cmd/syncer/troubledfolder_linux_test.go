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
	w.Helper()
	dir := w.Path(folder)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		w.Fatalf("mounting a tmpfs (this test needs root): %v", err)
	}
	w.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			w.Error(err)
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
			begin: func(w *world) error { return os.WriteFile(w.Path("secrets", "filler"), fill(w), 0o600) },
			mend:  func(w *world) error { return os.Remove(w.Path("secrets", "filler")) },
			told:  "no space left on device", fileIsBehind: true,
		},
		{
			name: "read-only",
			begin: func(w *world) error {
				return unix.Mount("", w.Path("secrets"), "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
			},
			mend: func(w *world) error { return unix.Mount("", w.Path("secrets"), "", unix.MS_REMOUNT, "") },
			told: "read-only file system", fileIsBehind: true,
		},
		{
			name:  "missing",
			begin: func(w *world) error { return unix.Unmount(w.Path("secrets"), 0) },
			mend:  func(w *world) error { return unix.Mount("tmpfs", w.Path("secrets"), "tmpfs", 0, "size=1m") },
			told:  "",
		},
		{
			name:  "another's",
			begin: func(w *world) error { return os.Chown(w.Path("secrets", "db.json"), 12345, 12345) },
			mend:  func(*world) error { return nil },
		},
	}
	for _, trouble := range troubles {
		t.Run(trouble.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.mount("secrets", "256k")
			w.Group("db", "json", "db/password")
			p := w.start()
			w.awaitProvided()
			before := w.file("db.json")

			if err := trouble.begin(w); err != nil {
				t.Fatal(err)
			}
			w.Renew("db/password")
			if trouble.told != "" {
				eventually(t, "a word about it", func() bool { return strings.Contains(p.Log(), trouble.told) })
			}
			if trouble.fileIsBehind && w.file("db.json") != before {
				t.Error("the file is neither as before nor as wanted")
			}
			if err := trouble.mend(w); err != nil {
				t.Fatal(err)
			}
			w.await("db.json", `{"password":"`+w.Value["db/password"]+`"}`)
			info, err := os.Stat(w.Path("secrets", "db.json"))
			if err != nil {
				t.Fatal(err)
			}
			if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Getuid() {
				t.Errorf("the file belongs to user %d", owner)
			}
			if left, err := os.ReadDir(w.Path("secrets")); err != nil || len(left) != 1 {
				t.Errorf("left in the folder: %v %v", left, err)
			}
			p.Stop()
		})
	}
}

// fill is all that a file system still takes.
func fill(w *world) []byte {
	w.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(w.Path("secrets"), &fs); err != nil {
		w.Fatal(err)
	}
	return bytes.Repeat([]byte{'x'}, int(fs.Bavail)*int(fs.Bsize))
}

// TestAMissingFolderEndsTheStart: its volume would not appear later.
func TestAMissingFolderEndsTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	if err := os.Remove(w.Path("secrets")); err != nil {
		t.Fatal(err)
	}
	p := w.start()
	p.Exit(1)
	if len(p.Lines("Ending with an error", "mount a volume there, or make the folder")) != 1 {
		t.Errorf("it says %s", p.Log())
	}
}
