package sinks

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/secretsync/syncer/internal/safefile"
)

// What is on the disk when the machine dies is decided by the order of calls.
func TestOrderOfCalls(t *testing.T) {
	want := map[string]string{
		"changed file":      "open secrets folder,sub,lstat,create,write,chmod,chown,sync file,stat,rename,close,sync folder,lstat",
		"removed file":      "open secrets folder,sub,lstat,remove,lstat,lstat,sync folder",
		"new file":          "open secrets folder,sub,mkdir,sub,sync folder,mkdir,sub,sync folder,sub,lstat,create,write,chmod,chown,sync file,stat,rename,close,sync folder,lstat",
		"removed directory": "open secrets folder,lstat,sub,list,readlink,readlink,readlink,remove,remove,remove,removeAll,lstat,lstat,sync folder",
		"changed directory": "open secrets folder,lstat,sub,list,readlink,readlink,readlink," +
			"mkdir,sub,create,write,chmod,chown,sync file,stat,close,create,write,chmod,chown,sync file,stat,close,sync folder,lstat," +
			"symlink,sync folder,symlink,rename,sync folder,remove,removeAll,sync folder,lstat",
	}
	for _, c := range faultCases() {
		if order, ok := want[c.name]; ok {
			if got := strings.Join(c.run(t, &faults{}), ","); got != order {
				t.Errorf("%s calls\n%s\nwant\n%s", c.name, got, order)
			}
		}
	}
}

// Until all of it is there nobody else may look into a temporary file.
func TestTemporaryFileIsPrivate(t *testing.T) {
	setUmask(t, 0)
	dir := t.TempDir()
	f := &faults{}
	f.hook = func(call string) {
		if call == "chmod" {
			if got := tree(t, dir); len(got) != 1 || !strings.HasPrefix(got[0], "-rw------- "+safefile.TempPrefix) {
				t.Errorf("the folder holds %q", got)
			}
		}
	}
	apply(t, f.files(dir, nil), fileTarget("a", 0o666), rewrite(WholeFile, "text"))
	expectTree(t, dir, "-rw-rw-rw- a")
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	f := &faults{}
	files, target := f.files(dir, nil), fileTarget("a", 0o600)
	apply(t, files, target, rewrite(WholeFile, "old"))
	f.calls, f.fail, f.err = nil, 5, syscall.ENOSPC // the write
	err := files.Apply(t.Context(), target, rewrite(WholeFile, "new and longer"))
	if want := filepath.Join(dir, "a") + ": write the file: no space left on device"; err == nil || err.Error() != want || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the error is %v, want %s", err, want)
	}
	expectTree(t, dir, "-rw------- a")
	if got := plaintext(read(t, files, target))[WholeFile]; got != "old" {
		t.Errorf("the file holds %q", got)
	}
	apply(t, files, target, rewrite(WholeFile, "new and longer"))
	if got := plaintext(read(t, files, target))[WholeFile]; got != "new and longer" {
		t.Errorf("with space again the file holds %q", got)
	}
}

// A temporary file that cannot be removed is emptied, and named so that it can
// be.
func TestLeftoverIsEmptyAndNamed(t *testing.T) {
	dir := t.TempDir()
	f := &faults{fail: 9, err: errFault} // the rename
	files, target := f.files(dir, nil), fileTarget("a", 0o400)
	f.hook = func(call string) {
		if call == "remove" {
			f.fail = len(f.calls)
		}
	}
	err := files.Apply(t.Context(), target, rewrite(WholeFile, "new"))
	left := tree(t, dir)
	if err == nil || len(left) != 1 {
		t.Fatalf("Apply says %v and the folder holds %q, want one temporary file", err, left)
	}
	name := strings.Fields(left[0])[1]
	if info, statErr := os.Stat(filepath.Join(dir, name)); statErr != nil || info.Size() != 0 {
		t.Errorf("the temporary file is %v (%v), want it empty", info, statErr)
	}
	if !strings.Contains(err.Error(), name) || !safefile.IsTempName(name) {
		t.Errorf("the error %q does not name %q", err, name)
	}
}
