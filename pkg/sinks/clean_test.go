package sinks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/targets"
)

func TestClean(t *testing.T) {
	dir := t.TempDir()
	files := newKeeper(dir, nil)
	plain, directory := fileTarget("app/a", 0o640), directoryTarget("all", 0o640)
	apply(t, files, plain, rewrite(WholeFile, "text"))
	apply(t, files, directory, rewrite("user", "text"))

	random := strings.Repeat("A2", 13)
	keep := []string{ // none of ours, though alike
		"app/.syncer-", "app/.syncer-notes", "app/.syncer-" + random + "A", "app/.syncer-" + random[1:], "app/.syncer-" + strings.ToLower(random),
		"app/x.syncer-" + random, "app/.a.tmp", "other/.syncer-" + random,
		"all/..2026_01_31_12_00_01." + random, "all/.syncer-" + random,
	}
	for _, name := range []string{"..2026_01_31_12_00_00." + random[1:], "..2026_13_31_12_00_00." + random, "..2026_01_31_12_00_00.123", "..x" + random} {
		must(t, os.Mkdir(filepath.Join(dir, "all", name), 0o755))
	}
	must(t, os.Mkdir(filepath.Join(dir, "other"), 0o755))
	for _, name := range keep {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o600))
	}
	must(t, os.Mkdir(filepath.Join(dir, "app/.syncer-"+strings.Repeat("B", 26)), 0o755))
	must(t, os.Symlink("a", filepath.Join(dir, "app/.syncer-"+strings.Repeat("C", 26))))
	before := tree(t, dir)

	for _, name := range []string{safefile.TempName(), safefile.TempName()} {
		must(t, os.WriteFile(filepath.Join(dir, "app", name), []byte("half"), 0o600))
	}
	must(t, os.Symlink("x", filepath.Join(dir, "all", safefile.TempName())))
	must(t, os.MkdirAll(filepath.Join(dir, "all/..2026_01_31_12_00_00."+random), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "all/..2026_01_31_12_00_00."+random+"/user"), []byte("half"), 0o600))

	if err := files.Clean(t.Context(), []*targets.Target{plain, directory, fileTarget("missing/a", 0o600), directoryTarget("nowhere", 0o600)}); err != nil {
		t.Error(err)
	}
	expectTree(t, dir, before...)
	if got := read(t, files, directory); got.Stale || !slices.Equal(tree(t, dir), before) {
		t.Error("after Clean the directory is stale")
	}
}

// One folder that cannot be cleaned does not keep the others from it.
func TestCleanGoesOn(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, safefile.TempName()), nil, 0o600))
	bad, good := fileTarget("file/a", 0o600), fileTarget("b", 0o600)
	err := newKeeper(dir, nil).Clean(t.Context(), []*targets.Target{bad, good})
	if err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, "file/a")+": ") {
		t.Errorf("Clean says %v", err)
	}
	expectTree(t, dir, "-rw------- file")
}

func TestCleanFails(t *testing.T) {
	for call, want := range map[string]string{"list": "list the folder", "removeAll": "remove the leftover .syncer-", "sync folder": "sync the folder"} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, safefile.TempName()), nil, 0o600))
		f := &faults{err: errFault}
		f.hook = func(c string) {
			if c == call {
				f.fail = len(f.calls)
			}
		}
		err := f.files(dir, nil).Clean(t.Context(), []*targets.Target{fileTarget("a", 0o600)})
		if !errors.Is(err, errFault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s fails and Clean says %v", call, err)
		}
	}
}

// Every folder is looked at once, and nothing is synced when nothing is left.
func TestCleanIsCheap(t *testing.T) {
	f := &faults{}
	err := f.files(t.TempDir(), nil).Clean(t.Context(), []*targets.Target{fileTarget("a", 0o600), fileTarget("b", 0o600)})
	if got, want := strings.Join(f.calls, ","), "open secrets folder,sub,list"; err != nil || got != want {
		t.Errorf("Clean calls %s, %v; want %s", got, err, want)
	}
}

func TestCleanEnds(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, safefile.TempName()), nil, 0o600))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newKeeper(dir, nil).Clean(ended, []*targets.Target{fileTarget("a", 0o600)}); !errors.Is(err, context.Canceled) {
		t.Errorf("Clean says %v", err)
	}
	if got := tree(t, dir); len(got) != 1 {
		t.Errorf("the folder holds %q", got)
	}
}

// An application may fill the folder with names: they are not all read.
func TestAFolderWithTooManyNamesIsNotListed(t *testing.T) {
	dir := memoryDir(t)
	for i := range mostEntries + 1 {
		if err := os.Symlink("x", filepath.Join(dir, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	files, target := newKeeper(dir, nil), fileTarget("a", 0o640)
	if err := files.Clean(t.Context(), []*targets.Target{target}); err == nil || !strings.Contains(err.Error(), "more than 100000 entries") {
		t.Errorf("Clean says %v", err)
	}
	apply(t, files, target, rewrite(WholeFile, "text"))
	if got := plaintext(read(t, files, target))[WholeFile]; got != "text" {
		t.Errorf("the file holds %q", got)
	}
}
