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
	for _, path := range []string{"a.json", "a.json/b"} {
		files, dir := newKeeper(t.TempDir(), nil), ""
		dir = files.dir
		old := fileTarget("a.json", 0o640)
		apply(t, files, old, rewrite(WholeFile, "text"))
		other := fileTarget(path, 0o640)
		other.Key = "file/other"
		files.Assign([]*targets.Target{fileTarget("b.json", 0o640), other})
		read(t, files, fileTarget("b.json", 0o640))
		if removed, altered, err := files.RemoveFormer(old.Key); len(removed)+len(altered) > 0 || err != nil {
			t.Errorf("%s: removed %q, altered %q (%v)", path, removed, altered, err)
		}
		expectTree(t, dir, "-rw-r----- a.json")
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
