package sinks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// setUmask changes the umask of the whole process for the test.
func setUmask(t *testing.T, mask int) {
	old := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(old) })
}

func TestModesAndUmask(t *testing.T) {
	for _, mask := range []int{0, 0o077, 0o777 &^ 0o700} {
		for _, mode := range []fs.FileMode{0o600, 0o640, 0o644, 0o755, 0o777} {
			t.Run(fmt.Sprintf("umask %04o mode %v", mask, mode), func(t *testing.T) {
				dir := t.TempDir()
				setUmask(t, mask)
				files := newKeeper(dir, nil)
				apply(t, files, fileTarget("app/a", mode), rewrite(WholeFile, "text"))
				folder := fs.ModeDir | 0o755&^fs.FileMode(mask)
				expectTree(t, dir, folder.String()+" app", mode.String()+" app/a")
				if got := read(t, files, fileTarget("app/a", mode)).Mode; got != mode {
					t.Errorf("Read gives the mode %v", got)
				}
			})
		}
	}
}

// A change of the mode alone is a write like any other.
func TestModeChange(t *testing.T) {
	dir := t.TempDir()
	files := newKeeper(dir, nil)
	apply(t, files, fileTarget("a", 0o600), rewrite(WholeFile, "text"))
	apply(t, files, fileTarget("a", 0o644), rewrite(WholeFile, "text"))
	expectTree(t, dir, "-rw-r--r-- a")
}

// The mode that Read gives shows bits that no target has, so that they go.
func TestReadShowsSpecialBits(t *testing.T) {
	dir := t.TempDir()
	files, target := newKeeper(dir, nil), fileTarget("a", 0o755)
	apply(t, files, target, rewrite(WholeFile, "text"))
	if err := os.Chmod(filepath.Join(dir, "a"), 0o755|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if got := read(t, files, target).Mode; got != 0o755|fs.ModeSetuid {
		t.Errorf("the mode is %v", got)
	}
}

func TestOwner(t *testing.T) {
	dir := t.TempDir()
	target := fileTarget("a", 0o600)
	mine, theirs := newKeeper(dir, nil), newKeeper(dir, &Owner{os.Getuid() + 1, -1})
	theirGroup, anyone := newKeeper(dir, &Owner{-1, os.Getgid() + 1}), newKeeper(dir, &Owner{-1, -1})
	apply(t, mine, target, rewrite(WholeFile, "text"))
	for files, stale := range map[*keeper]bool{mine: false, theirs: true, theirGroup: true, anyone: false} {
		if got := read(t, files, target); got.Stale != stale {
			t.Errorf("for the owner %v the file of %d:%d is stale: %t", files.owner, os.Getuid(), os.Getgid(), got.Stale)
		}
	}
	err := theirs.Apply(t.Context(), target, rewrite(WholeFile, "text"))
	switch { // who may give files away depends on who runs the test
	case err == nil:
		if read(t, theirs, target).Stale {
			t.Error("the file was not given away")
		}
	case !errors.Is(err, syscall.EPERM) || !strings.Contains(err.Error(), "set the owner"):
		t.Errorf("giving the file away: %v", err)
	}
	expectTree(t, dir, "-rw------- a")
	folder := directoryTarget("b", 0o600)
	apply(t, mine, folder, rewrite("user", "text"))
	if read(t, mine, folder).Stale || !read(t, theirGroup, folder).Stale {
		t.Error("for a folder of files, the owner is not compared")
	}
}

func TestBadTargets(t *testing.T) {
	dir := t.TempDir()
	files := newKeeper(dir, nil)
	targets := []*targets.Target{
		fileTarget("", 0o600), fileTarget(".", 0o600), fileTarget("..", 0o600), fileTarget("../a", 0o600), fileTarget("a/../../b", 0o600),
		fileTarget("/a", 0o600), fileTarget("a/", 0o600), fileTarget("a//b", 0o600), fileTarget(".syncer-a", 0o600), fileTarget("a/.syncer-b/c", 0o600),
		fileTarget("a", 0), fileTarget("a", 0o200), fileTarget("a", 0o644|fs.ModeSetuid), fileTarget("a", 0o644|fs.ModeDir),
		directoryTarget("../a", 0o600), directoryTarget("a", 0),
	}
	for _, target := range targets {
		if _, err := files.Read(t.Context(), target); err == nil {
			t.Errorf("Read takes the path %q and mode %v", target.File.Path, target.File.Mode)
		}
		for _, c := range []Changes{rewrite(WholeFile, "text"), removal(WholeFile)} {
			if err := files.Apply(t.Context(), target, c); err == nil {
				t.Errorf("Apply takes the path %q and mode %v", target.File.Path, target.File.Mode)
			}
		}
		if err := files.Clean(t.Context(), append(targets[:0:0], target)); err == nil {
			t.Errorf("Clean takes the path %q and mode %v", target.File.Path, target.File.Mode)
		}
	}
	expectTree(t, dir)
}

func TestBadParts(t *testing.T) {
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		target *targets.Target
		names  []string
	}{
		{fileTarget("a", 0o600), []string{"user"}},
		{fileTarget("a", 0o600), []string{WholeFile, "user"}},
		{directoryTarget("a", 0o600), []string{"", ".", "..", "..data", "..x", ".syncer-x", "a/../b", "/a", "a\x00b", long}},
	} {
		dir := t.TempDir()
		var pairs []string
		for _, name := range c.names {
			pairs = append(pairs, name, "text")
		}
		err := newKeeper(dir, nil).Apply(t.Context(), c.target, rewrite(pairs...))
		if err == nil {
			t.Errorf("the parts %q are taken", c.names)
			continue
		}
		for _, name := range c.names {
			if c.target.Format == targets.FormatDirectory && !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
				t.Errorf("the error does not name %q: %v", name, err)
			}
		}
		expectTree(t, dir)
	}
}

// TestLengthsOfPaths: every path that definitions accept can be written, and a second look
// finds nothing to write.
func TestLengthsOfPaths(t *testing.T) {
	for less := range 3 {
		name := strings.Repeat("x", targets.MaxFileName-1+less)
		deep := strings.Repeat("d/", targets.MaxFolders-1+less) + "x"
		for what, c := range map[string]struct {
			target *targets.Target
			part   string
		}{
			"a file":             {fileTarget(name, 0o600), WholeFile},
			"a folder of a file": {fileTarget(name+"/a", 0o600), WholeFile},
			"a directory":        {directoryTarget(name, 0o600), "user"},
			"a part":             {directoryTarget("d", 0o600), name},
			"a folder of a part": {directoryTarget("d", 0o600), name + "/user"},
			"a part in folders":  {directoryTarget("d", 0o600), deep},
		} {
			files := newKeeper(t.TempDir(), nil)
			changes := rewrite(c.part, "text")
			changes.Members, changes.Sets = []string{"a/b"}, &map[string]targets.DeliveredSet{"s": {Step: 1}}
			err := files.Apply(t.Context(), c.target, changes)
			if (err == nil) != (less < 2) {
				t.Errorf("%s of the bound%+d: %v", what, less-1, err)
			}
			if err != nil {
				continue
			}
			got := read(t, files, c.target)
			if got.Stale || string(got.Parts[c.part].Bytes()) != "text" || len(got.Members) != 1 || len(got.Sets) != 1 {
				t.Errorf("%s of the bound%+d is read as %v, stale %t", what, less-1, plaintext(got), got.Stale)
			}
			if altered := files.Altered([]*targets.Target{c.target}); altered != nil {
				t.Errorf("%s of the bound%+d is altered", what, less-1)
			}
			apply(t, files, c.target, removal(c.part))
		}
	}
}

// What is larger than any content of ours is not read, and is written over.
func TestSizeIsBounded(t *testing.T) {
	dir := t.TempDir()
	for _, target := range []*targets.Target{fileTarget("a", 0o600), directoryTarget("b", 0o600)} {
		files := newKeeper(dir, nil)
		name, part := filepath.Join(dir, "a"), WholeFile
		if target.Format == targets.FormatDirectory {
			name, part = filepath.Join(dir, "b/user"), "user"
		}
		largest, small := rewrite(part, strings.Repeat("x", maxSize)), rewrite(part, "small")
		apply(t, files, target, largest)
		if got := read(t, files, target); got.Stale || got.Parts[part].Len() != maxSize {
			t.Errorf("%s: of the largest content Read gives %d bytes, stale %t", target.Format, got.Parts[part].Len(), got.Stale)
		}
		if err := files.Apply(t.Context(), target, rewrite(part, strings.Repeat("x", maxSize+1))); err == nil {
			t.Errorf("%s: more than maxSize is taken", target.Format)
		}
		if err := os.Truncate(name, maxSize+1); err != nil {
			t.Fatal(err)
		}
		got := read(t, files, target)
		if v, ok := got.Parts[part]; !ok || v.Len() != 0 || !got.Stale {
			t.Errorf("%s: of a larger file Read gives %d bytes, stale %t", target.Format, v.Len(), got.Stale)
		}
		apply(t, files, target, small)
		if got := read(t, files, target); got.Stale || string(got.Parts[part].Bytes()) != "small" {
			t.Errorf("%s: written again, it is stale: %t", target.Format, got.Stale)
		}
	}
}

func TestMissingFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	files, target := newKeeper(dir, nil), fileTarget("app/db/a", 0o600)
	all := []*targets.Target{target}
	_, readErr := files.Read(t.Context(), target)
	errs := []error{
		readErr,
		files.Apply(t.Context(), target, rewrite(WholeFile, "text")),
		files.Apply(t.Context(), target, removal(WholeFile)),
		files.Clean(t.Context(), all),
	}
	for i, err := range errs {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "open the secrets folder") || !strings.Contains(err.Error(), "mount a volume there") {
			t.Errorf("without the secrets folder call %d says %v", i, err)
		}
	}

	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := read(t, files, target); got.Parts != nil || got.Stale {
		t.Errorf("without its folder Read gives %v", got)
	}
	apply(t, files, target, removal(WholeFile))
	if err := files.Clean(t.Context(), all); err != nil {
		t.Error(err)
	}
	expectTree(t, dir)
	apply(t, files, target, rewrite(WholeFile, "text"))
	expectTree(t, dir, "drwxr-xr-x app", "drwxr-xr-x app/db", "-rw------- app/db/a")
}

// A secrets folder that is replaced, as by a new mount, is the one used.
func TestReplacedSecretsFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	files, target := newKeeper(dir, nil), fileTarget("a", 0o600)
	apply(t, files, target, rewrite(WholeFile, "text"))
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if got := files.Altered([]*targets.Target{target}); len(got) != 1 {
		t.Errorf("Altered gives %q", got)
	}
	apply(t, files, target, rewrite(WholeFile, "text"))
	expectTree(t, dir, "-rw------- a")
}
