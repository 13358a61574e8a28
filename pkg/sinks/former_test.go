package sinks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// moved is a sink whose target was written at a.json, or with directory at a,
// and is at b now; between is what happens in between.
func moved(t *testing.T, f *faults, directory bool, between func(dir string, files *keeper)) (files *keeper, dir string) {
	t.Helper()
	dir = t.TempDir()
	files = f.files(dir, nil)
	target, change := fileTarget("a.json", 0o640), rewrite(WholeFile, "text")
	if directory {
		target, change = directoryTarget("a", 0o640), rewrite("user", "u", "word", "w")
	}
	files.Assign([]*targets.Target{target})
	apply(t, files, target, change)
	if between != nil {
		between(dir, files)
	}
	now := fileTarget("b.json", 0o640)
	files.Assign([]*targets.Target{now})
	apply(t, files, now, rewrite(WholeFile, "text"))
	return files, dir
}

func TestWhatATargetHadAtAnotherPathIsRemovedIfItIsAsItWasLeft(t *testing.T) {
	all := []*targets.Target{fileTarget("b.json", 0o640)}
	for name, c := range map[string]struct {
		directory        bool
		between          func(dir string, files *keeper)
		removed, altered string
		left             []string
	}{
		"a file":   {removed: "a.json"},
		"a folder": {directory: true, removed: "a", left: []string{"drwxr-xr-x a"}},
		"touched": {between: func(dir string, _ *keeper) {
			if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, altered: "a.json", left: []string{"-rw-r----- a.json"}},
		"dropped from the configuration meanwhile": {between: func(_ string, files *keeper) { files.Assign(nil) }, left: []string{"-rw-r----- a.json"}},
	} {
		files, dir := moved(t, &faults{}, c.directory, c.between)
		removed, altered, err := files.RemoveFormer(all[0].Key)
		if err != nil || !slices.Equal(removed, paths(dir, c.removed)) || !slices.Equal(altered, paths(dir, c.altered)) {
			t.Errorf("%s: removed %q, altered %q (%v)", name, removed, altered, err)
		}
		expectTree(t, dir, append(c.left, "-rw-r----- b.json")...)
		if removed, altered, err := files.RemoveFormer(all[0].Key); len(removed)+len(altered) > 0 || err != nil {
			t.Errorf("%s, once more: removed %q, altered %q (%v)", name, removed, altered, err)
		}
		if keys := files.Altered(all); len(keys) > 0 {
			t.Errorf("%s: altered: %q", name, keys)
		}
	}
}

// paths is a list of one path in dir, or of none.
func paths(dir, name string) []string {
	if name == "" {
		return nil
	}
	return []string{filepath.Join(dir, name)}
}

func TestWhatIsAtThePathOfAnotherTargetStays(t *testing.T) {
	for path, stays := range map[string]bool{"a.json": true, "a.json/b": false} { // below a file, nothing can be
		files, dir := newKeeper(t.TempDir(), nil), ""
		dir = files.dir
		old := fileTarget("a.json", 0o640)
		apply(t, files, old, rewrite(WholeFile, "text"))
		other := fileTarget(path, 0o640)
		other.Key = "file/other"
		files.Assign([]*targets.Target{fileTarget("b.json", 0o640), other})
		read(t, files, fileTarget("b.json", 0o640))
		removed, altered, err := files.RemoveFormer(old.Key)
		if len(removed) > 0 == stays || len(altered) > 0 || err != nil {
			t.Errorf("%s: removed %q, altered %q (%v)", path, removed, altered, err)
		}
		if stays {
			expectTree(t, dir, "-rw-r----- a.json")
		}
	}
}

func TestWhatWasNeverRightIsNobodysToRemove(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, confirmed := range []bool{false, true} {
		files, target := newKeeper(dir, nil), fileTarget("a.json", 0o640)
		read(t, files, target)
		if confirmed { // as it is what would have been written
			files.Confirm(target.Key)
			read(t, files, target)
		}
		files.Assign([]*targets.Target{fileTarget("b.json", 0o640)})
		read(t, files, fileTarget("b.json", 0o640))
		removed, _, err := files.RemoveFormer(target.Key)
		if err != nil || (len(removed) == 1) != confirmed {
			t.Errorf("confirmed %t: removed %q (%v)", confirmed, removed, err)
		}
	}
}

func TestARemovalThatFailedIsTriedAgain(t *testing.T) {
	f := &faults{err: errFault}
	files, dir := moved(t, f, false, nil)
	all := []*targets.Target{fileTarget("b.json", 0o640)}
	f.hook = func(call string) {
		if call == "remove" {
			f.fail = len(f.calls)
		}
	}
	if removed, _, err := files.RemoveFormer(all[0].Key); len(removed) > 0 || err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "a.json")) {
		t.Errorf("removed %q (%v)", removed, err)
	}
	if keys := files.Altered(all); len(keys) != 1 {
		t.Error("the target is not reported as altered")
	}
	f.hook, f.fail = nil, 0
	if removed, _, err := files.RemoveFormer(all[0].Key); len(removed) != 1 || err != nil {
		t.Errorf("once more: removed %q (%v)", removed, err)
	}
	expectTree(t, dir, "-rw-r----- b.json")
}

// TestATargetMovesAboveOrBelowItsOldPath, also if it was a folder and becomes a file. Its own
// old content is no obstacle, and content of others stays.
func TestATargetMovesAboveOrBelowItsOldPath(t *testing.T) {
	file := func(path string) *targets.Target { return fileTarget(path, 0o640) }
	folder := func(path string) *targets.Target { return directoryTarget(path, 0o640) }
	for name, c := range map[string]struct {
		from, to *targets.Target
		other    string // a file of somebody else
		altered  bool
		want     []string // nil: an error, and nothing is removed
	}{
		"a file into a folder of its name": {from: file("db"), to: file("db/creds"), want: []string{"db/creds"}},
		"deep":                             {from: file("db"), to: file("db/a/b"), want: []string{"db/a/b"}},
		"a file becomes a folder":          {from: file("db"), to: folder("db"), want: []string{"db/user"}},
		"a file into a folder of files":    {from: file("db"), to: folder("db/all"), want: []string{"db/all/user"}},
		"out of a folder of its name":      {from: file("db/creds"), to: file("db"), want: []string{"db"}},
		"out of a deep one":                {from: file("db/a/b"), to: file("db"), want: []string{"db"}},
		"a folder becomes a file":          {from: folder("db"), to: file("db"), want: []string{"db"}},
		"a folder below becomes a file":    {from: folder("db/all"), to: file("db"), want: []string{"db"}},
		"a folder gets a file inside":      {from: folder("db"), to: file("db/creds"), want: []string{"db/creds"}},
		"a file becomes the folder above":  {from: file("db/creds"), to: folder("db"), want: []string{"db/user"}},
		"a folder with a file of others":   {from: file("db/creds"), to: file("db"), other: "db/mine"},
		"a folder of files, and others":    {from: folder("db"), to: file("db"), other: "db/mine"},
		"a file that somebody changed":     {from: file("db"), to: file("db/creds"), altered: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := newKeeper(dir, nil)
			content := func(of *targets.Target) Changes {
				if of.Format == targets.FormatDirectory {
					return rewrite("user", "u")
				}
				return rewrite(WholeFile, "text")
			}
			c.from.Key, c.to.Key = "file/db", "file/db"
			apply(t, files, c.from, content(c.from))
			if c.other != "" {
				if err := os.WriteFile(filepath.Join(dir, c.other), []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.altered {
				if err := os.WriteFile(filepath.Join(dir, "db"), []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			files.Assign([]*targets.Target{c.to})
			_, err := files.Read(t.Context(), c.to)
			if c.want == nil {
				if err == nil {
					t.Error("no error")
				}
				for _, path := range []string{c.other, c.from.File.Path} {
					if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
						t.Error(err)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := files.Apply(t.Context(), c.to, content(c.to)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := files.RemoveFormer(c.to.Key); err != nil {
				t.Error(err)
			}
			for _, path := range c.want {
				if _, err := os.ReadFile(filepath.Join(dir, path)); err != nil {
					t.Error(err)
				}
			}
			if old, err := os.Lstat(filepath.Join(dir, c.from.File.Path)); err == nil && c.from.Format != targets.FormatDirectory && old.Mode().IsRegular() && c.to.File.Path != c.from.File.Path {
				t.Error("the old file is still there")
			}
			if state, err := files.Read(t.Context(), c.to); err != nil || len(state.Parts) != 1 || state.Stale {
				t.Errorf("it then has %d parts: %v", len(state.Parts), err)
			}
		})
	}
}

// TestAnotherTargetMayBecomeTheFolderOfAnOldFile, and the other way round.
func TestAnotherTargetMayBecomeTheFolderOfAnOldFile(t *testing.T) {
	for from, to := range map[string]string{"db": "db/creds", "db/creds": "db"} {
		files := newKeeper(t.TempDir(), nil)
		old, now, other := fileTarget(from, 0o640), fileTarget("elsewhere", 0o640), fileTarget(to, 0o640)
		old.Key, now.Key, other.Key = "file/old", "file/old", "file/other"
		apply(t, files, old, rewrite(WholeFile, "text"))
		files.Assign([]*targets.Target{now, other})
		read(t, files, now)
		apply(t, files, now, rewrite(WholeFile, "text"))
		if removed, _, err := files.RemoveFormer(now.Key); len(removed) != 1 || err != nil {
			t.Errorf("removed %q (%v)", removed, err)
		}
		read(t, files, other)
		apply(t, files, other, rewrite(WholeFile, "text"))
	}
}
