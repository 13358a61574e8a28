package sinks

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDirectoryLayout(t *testing.T) {
	dir := t.TempDir()
	files, target := newKeeper(dir, nil), directoryTarget("app/db/a", 0o640)
	apply(t, files, target, rewrite("user", "u", "word", "w"))
	want := append([]string{"drwxr-xr-x app", "drwxr-xr-x app/db"}, directoryTree("user", "word")...)
	expectTree(t, dir, want...)
	for name, text := range map[string]string{"user": "u", "word": "w"} {
		if b, err := os.ReadFile(filepath.Join(dir, "app/db/a", name)); err != nil || string(b) != text {
			t.Errorf("%s holds %q, %v", name, b, err)
		}
	}
}

// Whatever somebody does to a directory, Read says that it is not right, and
// Apply makes it right; files of others stay.
func TestDirectoryIsMended(t *testing.T) {
	damages := map[string]func(t *testing.T, dir, version string){
		"part removed":       func(t *testing.T, _, version string) { must(t, os.Remove(filepath.Join(version, "user"))) },
		"part added":         func(t *testing.T, _, version string) { must(t, os.WriteFile(filepath.Join(version, "x"), nil, 0o640)) },
		"part is a folder":   func(t *testing.T, _, version string) { must(t, os.Mkdir(filepath.Join(version, "x"), 0o755)) },
		"mode of one":        func(t *testing.T, _, version string) { must(t, os.Chmod(filepath.Join(version, "word"), 0o644)) },
		"symlink removed":    func(t *testing.T, dir, _ string) { must(t, os.Remove(filepath.Join(dir, "user"))) },
		"symlink added":      func(t *testing.T, dir, _ string) { must(t, os.Symlink("..data/x", filepath.Join(dir, "x"))) },
		"..data removed":     func(t *testing.T, dir, _ string) { must(t, os.Remove(filepath.Join(dir, "..data"))) },
		"..data dangles":     func(t *testing.T, _, version string) { must(t, os.RemoveAll(version)) },
		"everything removed": func(t *testing.T, dir, _ string) { must(t, os.RemoveAll(dir)) },
		"older version left": func(t *testing.T, dir, version string) {
			must(t, os.CopyFS(filepath.Join(dir, "..2001_01_31_12_00_00."+strings.Repeat("A", 26)), os.DirFS(version)))
		},
		"symlink replaced by a file": func(t *testing.T, dir, _ string) {
			must(t, os.Remove(filepath.Join(dir, "user")))
			must(t, os.WriteFile(filepath.Join(dir, "user"), []byte("x"), 0o600))
		},
		"..data leads elsewhere": func(t *testing.T, dir, _ string) {
			must(t, os.Remove(filepath.Join(dir, "..data")))
			must(t, os.Symlink("/etc", filepath.Join(dir, "..data")))
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir := filepath.Join(base, "app/db/a")
			files, target := newKeeper(base, nil), directoryTarget("app/db/a", 0o640)
			wanted := map[string]string{"user": "u", "word": "w"}
			change := rewrite("user", "u", "word", "w")
			apply(t, files, target, change)
			version, err := filepath.EvalSymlinks(filepath.Join(dir, "..data"))
			must(t, err)
			damage(t, dir, version)
			if got := read(t, files, target); !got.Stale && maps.Equal(plaintext(got), wanted) {
				t.Error("Read takes it for right")
			}
			apply(t, files, target, change)
			if got := read(t, files, target); got.Stale || !maps.Equal(plaintext(got), wanted) {
				t.Errorf("mended, it is stale: %t", got.Stale)
			}
			expectTree(t, base, append([]string{"drwxr-xr-x app", "drwxr-xr-x app/db"}, directoryTree("user", "word")...)...)
		})
	}
}

func TestDirectoryKeepsForeignFiles(t *testing.T) {
	dir := t.TempDir()
	files, target := newKeeper(dir, nil), directoryTarget("a", 0o640)
	must(t, os.MkdirAll(filepath.Join(dir, "a/sub/x"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "a/theirs"), []byte("text"), 0o600))
	must(t, os.Symlink("theirs", filepath.Join(dir, "a/link")))
	before := tree(t, dir)
	if got := read(t, files, target); got.Parts != nil || got.Stale {
		t.Errorf("Read takes other files for the target: %v", got)
	}
	apply(t, files, target, rewrite("user", "u"))
	if got := read(t, files, target); got.Stale || len(got.Parts) != 1 {
		t.Errorf("beside other files Read gives %v", got)
	}
	apply(t, files, target, removal("user"))
	expectTree(t, dir, before...)
}

func TestDirectoryRefusesFolderAtPart(t *testing.T) {
	for _, name := range []string{"user", "..data"} {
		dir := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(dir, "a", name), 0o755))
		before := tree(t, dir)
		err := newKeeper(dir, nil).Apply(t.Context(), directoryTarget("a", 0o640), rewrite("user", "u", "word", "w"))
		if err == nil || !strings.Contains(err.Error(), name+" is a folder") {
			t.Errorf("with a folder at %s Apply says %v", name, err)
		}
		expectTree(t, dir, before...)
	}
}

func TestDirectoryNeedsFolder(t *testing.T) {
	for name, make := range map[string]func(name string) error{
		"file":    func(name string) error { return os.WriteFile(name, nil, 0o600) },
		"symlink": func(name string) error { return os.Symlink("real", name) },
	} {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
		must(t, make(filepath.Join(dir, "a")))
		before := tree(t, dir)
		files, target := newKeeper(dir, nil), directoryTarget("a", 0o640)
		if _, err := files.Read(t.Context(), target); err == nil || !strings.Contains(err.Error(), "is not a folder") {
			t.Errorf("with a %s there Read says %v", name, err)
		}
		for _, c := range []Changes{rewrite("user", "u"), removal("user")} {
			if err := files.Apply(t.Context(), target, c); err == nil || !strings.Contains(err.Error(), "is not a folder") {
				t.Errorf("with a %s there Apply says %v", name, err)
			}
		}
		expectTree(t, dir, before...)
	}
}

// The bound is on all parts together.
func TestDirectorySizeIsBounded(t *testing.T) {
	dir := t.TempDir()
	files, target := newKeeper(dir, nil), directoryTarget("a", 0o640)
	half := strings.Repeat("x", maxSize/2)
	apply(t, files, target, rewrite("user", half, "word", half))
	if got := read(t, files, target); got.Stale || got.Parts["word"].Len() != len(half) {
		t.Errorf("of the largest parts Read gives %d bytes, stale %t", got.Parts["word"].Len(), got.Stale)
	}
	must(t, os.Truncate(filepath.Join(dir, "a/word"), maxSize/2+1))
	if got := read(t, files, target); !got.Stale || got.Parts["word"].Len() != 0 {
		t.Errorf("of larger parts Read gives %d bytes, stale %t", got.Parts["word"].Len(), got.Stale)
	}
}

// A removal that was interrupted is seen, so that it is finished.
func TestDirectoryRestOfARemoval(t *testing.T) {
	for _, gone := range [][]string{{"..data"}, {"..data", "user"}, {"user", "VERSION"}, {"..data", "VERSION"}} {
		dir := t.TempDir()
		files, target := newKeeper(dir, nil), directoryTarget("a", 0o640)
		apply(t, files, target, rewrite("user", "u"))
		version, err := os.Readlink(filepath.Join(dir, "a/..data"))
		must(t, err)
		for _, name := range gone {
			must(t, os.RemoveAll(filepath.Join(dir, "a", strings.Replace(name, "VERSION", version, 1))))
		}
		got := read(t, files, target)
		if len(got.Parts) == 0 || !got.Stale {
			t.Errorf("without %q Read gives %v", gone, got)
		}
		apply(t, files, target, removal(slices.Collect(maps.Keys(got.Parts))...))
		expectTree(t, dir, "drwxr-xr-x a")
		if got := read(t, files, target); got.Parts != nil || got.Stale {
			t.Errorf("without %q and removed, Read gives %v", gone, got)
		}
	}
}
