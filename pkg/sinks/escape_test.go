package sinks

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// places makes a secrets folder and another folder, with a file each that
// nobody may touch.
func places(t *testing.T) (dir, outside string) {
	t.Helper()
	base := t.TempDir()
	dir, outside = filepath.Join(base, "secrets"), filepath.Join(base, "outside")
	for _, d := range []string{dir, outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(outside, "a"), []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, outside
}

func untouched(t *testing.T, outside string) {
	t.Helper()
	expectTree(t, outside, "-rw------- a")
	if b, err := os.ReadFile(filepath.Join(outside, "a")); err != nil || string(b) != "untouched" {
		t.Errorf("the file outside holds %q, %v", b, err)
	}
}

func TestSymlinkAtTheTargetIsReplaced(t *testing.T) {
	for _, to := range []string{"../outside/a", "/ABSOLUTE/a", "real", "dangling", "loop"} {
		dir, outside := places(t)
		to = strings.Replace(to, "/ABSOLUTE", outside, 1)
		if err := os.WriteFile(filepath.Join(dir, "real"), []byte("real"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(dir, "loop")); err != nil {
			t.Fatal(err)
		}
		files, target := newKeeper(dir, nil), fileTarget("loop", 0o640)
		if got := read(t, files, target); got.Parts != nil {
			t.Errorf("%s: Read follows the symlink to %q", to, plaintext(got))
		}
		apply(t, files, target, rewrite(WholeFile, "text"))
		untouched(t, outside)
		expectTree(t, dir, "-rw-r----- loop", "-rw------- real")
		if b, _ := os.ReadFile(filepath.Join(dir, "real")); string(b) != "real" {
			t.Errorf("%s: the other file holds %q", to, b)
		}
	}
}

// Removing takes a symlink away, never what it leads to.
func TestSymlinkAtTheTargetIsRemoved(t *testing.T) {
	dir, outside := places(t)
	if err := os.Symlink("../outside/a", filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	apply(t, newKeeper(dir, nil), fileTarget("a", 0o600), removal(WholeFile))
	untouched(t, outside)
	expectTree(t, dir)
}

func TestSymlinkOnTheWay(t *testing.T) {
	for _, to := range []string{"../outside", "/ABSOLUTE", "../secrets/../outside"} {
		dir, outside := places(t)
		to = strings.Replace(to, "/ABSOLUTE", outside, 1)
		if err := os.Symlink(to, filepath.Join(dir, "app")); err != nil {
			t.Fatal(err)
		}
		files := newKeeper(dir, nil)
		for _, target := range []*targets.Target{
			fileTarget("app/a", 0o600), fileTarget("app/new/a", 0o600),
			directoryTarget("app", 0o600), directoryTarget("app/a", 0o600), directoryTarget("app/new", 0o600),
		} {
			name := WholeFile
			if target.Format == targets.FormatDirectory {
				name = "user"
			}
			_, err := files.Read(t.Context(), target)
			for _, err := range []error{
				err,
				files.Apply(t.Context(), target, rewrite(name, "text")),
				files.Apply(t.Context(), target, removal(name)),
				files.Clean(t.Context(), []*targets.Target{target}),
			} {
				if err == nil {
					t.Errorf("%s: %s is used through the symlink", to, target.File.Path)
				}
			}
		}
		untouched(t, outside)
	}
}

// A symlink that stays inside is followed on the way.
func TestSymlinkInside(t *testing.T) {
	dir, _ := places(t)
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "app")); err != nil {
		t.Fatal(err)
	}
	apply(t, newKeeper(dir, nil), fileTarget("app/a", 0o600), rewrite(WholeFile, "text"))
	expectTree(t, dir, "link app -> real", "drwxr-xr-x real", "-rw------- real/a")
}

// Somebody puts a symlink in the folder's place in the middle of a change.
func TestFolderReplacedDuringWrite(t *testing.T) {
	for _, moment := range []string{"create", "write", "rename", "sync folder"} {
		dir, outside := places(t)
		target := fileTarget("app/a", 0o600)
		apply(t, newKeeper(dir, nil), target, rewrite(WholeFile, "old"))
		f := &faults{}
		f.hook = func(call string) {
			if call != moment {
				return
			}
			if err := os.Rename(filepath.Join(dir, "app"), filepath.Join(dir, "moved")); err != nil {
				t.Error(err)
			}
			if err := os.Symlink("../outside", filepath.Join(dir, "app")); err != nil {
				t.Error(err)
			}
		}
		files := f.files(dir, nil)
		apply(t, files, target, rewrite(WholeFile, "new"))
		f.hook = nil
		untouched(t, outside)
		expectTree(t, dir, "link app -> ../outside", "drwxr-xr-x moved", "-rw------- moved/a")
		if got := files.Altered([]*targets.Target{target}); len(got) != 1 {
			t.Errorf("at %s: the replaced folder is not reported", moment)
		}
	}
}

// A folder is not ours to replace or remove, even an empty one.
func TestAFolderAtTheTarget(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	files, target := newKeeper(dir, nil), fileTarget("a", 0o600)
	_, readErr := files.Read(t.Context(), target)
	for _, err := range []error{
		readErr,
		files.Apply(t.Context(), target, rewrite(WholeFile, "text")),
		files.Apply(t.Context(), target, removal(WholeFile)),
	} {
		if err == nil || !strings.Contains(err.Error(), "is a folder") {
			t.Errorf("the error is %v", err)
		}
	}
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Errorf("the folder holds %q", after)
	}
}

// What holds nothing is replaced, as a symlink is.
func TestAFIFOOrASocketAtTheTargetIsReplaced(t *testing.T) {
	for kind, make := range map[string]func(string) error{
		"FIFO": func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"socket": func(name string) error {
			fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			return errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: name}), syscall.Close(fd))
		},
	} {
		t.Chdir(t.TempDir()) // the path of a socket must be short
		if err := make("a"); err != nil {
			t.Fatal(err)
		}
		files, target := newKeeper(".", nil), fileTarget("a", 0o600)
		if state, err := files.Read(t.Context(), target); err != nil || len(state.Parts) != 0 {
			t.Errorf("with a %s there Read gives %v, %v", kind, state, err)
		}
		apply(t, files, target, rewrite(WholeFile, "text"))
		expectTree(t, ".", "-rw------- a")
		if err := os.Remove("a"); err != nil {
			t.Fatal(err)
		}
		if err := make("a"); err != nil {
			t.Fatal(err)
		}
		if got := files.Altered([]*targets.Target{target}); len(got) != 1 {
			t.Errorf("a %s in the file's place is not reported", kind)
		}
		apply(t, files, target, removal(WholeFile))
		expectTree(t, ".")
	}
}

// A FIFO that takes the file's place while it is read does not block.
func TestFIFODuringRead(t *testing.T) {
	dir := t.TempDir()
	target := fileTarget("a", 0o600)
	apply(t, newKeeper(dir, nil), target, rewrite(WholeFile, "text"))
	f := &faults{}
	f.hook = func(call string) {
		if call == "open" {
			if err := os.Remove(filepath.Join(dir, "a")); err != nil {
				t.Error(err)
			}
			if err := syscall.Mkfifo(filepath.Join(dir, "a"), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	if state, err := f.files(dir, nil).Read(t.Context(), target); err == nil {
		t.Errorf("Read gives %v", state)
	}
}

func TestFileGrowsDuringRead(t *testing.T) {
	dir := t.TempDir()
	target := fileTarget("a", 0o600)
	apply(t, newKeeper(dir, nil), target, rewrite(WholeFile, "text"))
	f, grown := &faults{}, false
	f.hook = func(call string) {
		if call == "read" && !grown {
			grown = true
			if err := os.WriteFile(filepath.Join(dir, "a"), []byte("longer text"), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := f.files(dir, nil).Read(t.Context(), target); err == nil || !strings.Contains(err.Error(), "grew") {
		t.Errorf("Read says %v", err)
	}
}

func TestAFIFOInPlaceOfAFolderIsRefusedWithoutWaiting(t *testing.T) {
	dir, _ := places(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "sub"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, target := range []*targets.Target{fileTarget("sub/db", 0o640), directoryTarget("sub", 0o640), directoryTarget("sub/db", 0o640)} {
		files := newKeeper(dir, nil)
		if _, err := files.Read(t.Context(), target); err == nil || !strings.Contains(err.Error(), target.File.Path) {
			t.Errorf("Read of %s: %v, want an error that names it", target.File.Path, err)
		}
		part := WholeFile
		if target.Format == targets.FormatDirectory {
			part = "a"
		}
		if err := files.Apply(t.Context(), target, rewrite(part, "text")); err == nil {
			t.Errorf("Apply of %s succeeds", target.File.Path)
		}
		if err := files.Clean(t.Context(), []*targets.Target{target}); err == nil {
			t.Errorf("Clean of %s succeeds", target.File.Path)
		}
	}
	expectTree(t, dir, "prw-r--r-- sub")
}
