package sinks

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/targets"
)

// faultCase is one change, of which every call is made to fail in turn.
type faultCase struct {
	name   string
	target *targets.Target
	before []Changes // what was applied earlier
	change Changes
	// after is the tree once the change is made, without the folders on the
	// way.
	after []string
}

func faultCases() []faultCase {
	file, dir := fileTarget("app/db/a.yaml", 0o640), directoryTarget("app/db/a", 0o640)
	return []faultCase{
		{"new file", file, nil, rewrite(WholeFile, "canary new"), []string{"-rw-r----- app/db/a.yaml"}},
		{"changed file", file, []Changes{rewrite(WholeFile, "canary old")}, rewrite(WholeFile, "canary new"), []string{"-rw-r----- app/db/a.yaml"}},
		{"removed file", file, []Changes{rewrite(WholeFile, "canary old")}, removal(WholeFile), nil},
		{"new directory", dir, nil, rewrite("user", "canary u1", "word", "canary w1"), directoryTree("user", "word")},
		{
			"changed directory", dir, []Changes{rewrite("user", "canary u1", "gone", "canary g1")},
			rewrite("user", "canary u2", "word", "canary w2"), directoryTree("user", "word"),
		},
		{"removed directory", dir, []Changes{rewrite("user", "canary u1", "word", "canary w1")}, removal("user", "word"), []string{"drwxr-xr-x app/db/a"}},
	}
}

// directoryTree is the tree of a directory target with these parts.
func directoryTree(names ...string) []string {
	list := []string{"drwxr-xr-x app/db/a", "drwxr-xr-x app/db/a/VERSION"}
	for _, name := range names {
		list = append(list, "-rw-r----- app/db/a/VERSION/"+name)
	}
	list = append(list, "link app/db/a/..data -> VERSION")
	for _, name := range names {
		list = append(list, "link app/db/a/"+name+" -> ..data/"+name)
	}
	return list
}

// Whatever call fails, the target is whole, as before or as wanted; a failed
// write leaves nothing behind; and a repetition mends all.
func TestEveryCallFails(t *testing.T) {
	for _, c := range faultCases() {
		t.Run(c.name, func(t *testing.T) {
			calls := c.run(t, &faults{})
			for i, call := range calls {
				for _, after := range []bool{false, true} {
					t.Run(fmt.Sprintf("%02d %s after=%t", i+1, call, after), func(t *testing.T) {
						c.run(t, &faults{fail: i + 1, after: after, err: &os.PathError{Op: call, Path: "x", Err: errFault}})
					})
				}
			}
		})
	}
}

// run makes the change with the faults and checks all that must hold. It
// gives the calls that the change made.
func (c faultCase) run(t *testing.T, f *faults) []string {
	dir := memoryDir(t)
	plain := newKeeper(dir, nil)
	for _, earlier := range c.before {
		apply(t, plain, c.target, earlier)
	}
	old := plaintext(read(t, plain, c.target))
	wanted := plaintext(State{Parts: c.change.Parts})

	files := f.files(dir, &Owner{os.Getuid(), os.Getgid()})
	err := files.Apply(t.Context(), c.target, c.change)
	calls := slices.Clone(f.calls)
	if f.fail > 0 && err == nil && calls[f.fail-1] != "lstat" && calls[f.fail-1] != "sub" { // a look
		t.Errorf("%s failed, and Apply says nothing", calls[f.fail-1])
	}
	f.fail = 0
	c.checkError(t, files, err)
	c.checkWhole(t, dir, old, wanted, err == nil)

	state := read(t, files, c.target)
	if got := plaintext(state); err == nil || state.Stale || !maps.Equal(got, wanted) {
		again := c.change
		if again.Parts == nil {
			again.Remove = slices.Sorted(maps.Keys(got))
		}
		apply(t, files, c.target, again)
	}
	state = read(t, files, c.target)
	if got := plaintext(state); state.Stale || !maps.Equal(got, wanted) {
		t.Errorf("repeated, it has the parts %q, stale %t; want %q", got, state.Stale, wanted)
	}
	if keys := files.Altered([]*targets.Target{c.target}); len(keys) != 0 {
		t.Errorf("repeated, it is reported as altered")
	}
	c.checkTree(t, dir, c.after)
	return calls
}

func (c faultCase) checkError(t *testing.T, files *keeper, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if !errors.Is(err, errFault) || !strings.HasPrefix(err.Error(), filepath.Join(files.dir, c.target.File.Path)+": ") {
		t.Errorf("the error is %q; want the path in front and %q in it", err, errFault)
	}
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("the error %q holds a value", err)
	}
	if keys := files.Altered([]*targets.Target{c.target}); !slices.Equal(keys, []targets.Key{c.target.Key}) {
		t.Errorf("after the error %q, Altered gives %q", err, keys)
	}
}

// checkWhole looks through a sink that knows nothing of the fault.
func (c faultCase) checkWhole(t *testing.T, dir string, old, wanted map[string]string, done bool) {
	t.Helper()
	state := read(t, newKeeper(dir, nil), c.target)
	got := plaintext(state)
	switch {
	case maps.Equal(got, wanted) && (got == nil) == (wanted == nil):
	case !done && maps.Equal(got, old) && (got == nil) == (old == nil):
	case !done && wanted == nil && state.Stale:
		// The rest of a removed directory; no part can be opened any more.
		for name := range old {
			if _, err := os.ReadFile(filepath.Join(dir, c.target.File.Path, name)); err == nil {
				t.Errorf("the part %q is still there", name)
			}
		}
	default:
		t.Errorf("it has the parts %q, want %q or, failed, %q", got, wanted, old)
	}
	if got != nil && !state.Stale && state.Mode != c.target.File.Mode {
		t.Errorf("it has the mode %v, want %v", state.Mode, c.target.File.Mode)
	}
	if !state.Stale { // which says that there is a rest, to be tidied
		for _, line := range tree(t, dir) {
			if strings.Contains(line, safefile.TempPrefix) || strings.Count(line, "VERSION") > 0 && state.Parts == nil {
				t.Errorf("left behind: %s", line)
			}
		}
	}
}

func (c faultCase) checkTree(t *testing.T, dir string, want []string) {
	t.Helper()
	got := slices.DeleteFunc(tree(t, dir), func(line string) bool {
		return line == "drwxr-xr-x app" || line == "drwxr-xr-x app/db"
	})
	if !slices.Equal(got, want) {
		t.Errorf("the folder holds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A sync that failed is made up for by the next Read, since that may find that
// nothing is left to write.
func TestReadMakesUpForASync(t *testing.T) {
	for _, c := range faultCases() {
		dir := t.TempDir()
		f := &faults{err: errFault}
		files := f.files(dir, nil)
		for _, earlier := range append(c.before, c.change) {
			apply(t, files, c.target, earlier)
		}
		last := len(f.calls) - 1 - slices.IndexFunc(reversed(f.calls), func(call string) bool { return call == "sync folder" })

		dir = t.TempDir()
		f = &faults{err: errFault}
		files = f.files(dir, nil)
		for _, earlier := range c.before {
			apply(t, files, c.target, earlier)
		}
		f.fail = last + 1
		if err := files.Apply(t.Context(), c.target, c.change); !errors.Is(err, errFault) {
			t.Errorf("%s: Apply says %v", c.name, err)
		}
		f.hook = func(call string) {
			if call == "sync folder" {
				f.fail = len(f.calls)
			}
		}
		if _, err := files.Read(t.Context(), c.target); !errors.Is(err, errFault) || !strings.Contains(err.Error(), "sync the folder") {
			t.Errorf("%s: the sync fails again and Read says %v", c.name, err)
		}
		f.hook, f.fail, f.calls = nil, 0, nil
		for _, synced := range []bool{true, false} {
			f.calls = nil
			read(t, files, c.target)
			if slices.Contains(f.calls, "sync folder") != synced {
				t.Errorf("%s: Read calls %q", c.name, f.calls)
			}
		}
	}
}

func reversed(s []string) []string {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}

// A folder on the way that was not synced is made, and synced, again.
func TestFolderOnTheWayIsNotSynced(t *testing.T) {
	dir := t.TempDir()
	f := &faults{fail: 5, err: errFault}
	err := f.files(dir, nil).Apply(t.Context(), fileTarget("app/a", 0o600), rewrite(WholeFile, "text"))
	if !errors.Is(err, errFault) || !strings.Contains(err.Error(), "sync the folder .") {
		t.Errorf("Apply says %v", err)
	}
	expectTree(t, dir)
}

// Every call of Read that fails is an error, never "nothing is there".
func TestReadFails(t *testing.T) {
	for _, target := range []*targets.Target{fileTarget("app/a", 0o640), directoryTarget("app/a", 0o640)} {
		dir := t.TempDir()
		names := []string{WholeFile, "text"}
		if target.Format == targets.FormatDirectory {
			names = []string{"user", "text", "word", "text"}
		}
		apply(t, newKeeper(dir, nil), target, rewrite(names...))
		f := &faults{}
		read(t, f.files(dir, nil), target)
		for i, call := range f.calls {
			f := &faults{fail: i + 1, err: errFault}
			state, err := f.files(dir, nil).Read(t.Context(), target)
			switch {
			case call == "close" || call == "lstat" && err == nil && len(state.Parts) == len(names)/2:
			case !errors.Is(err, errFault) || state.Parts != nil:
				t.Errorf("%s: call %d, %s, fails and Read gives %v, %v", target.Format, i+1, call, state, err)
			}
		}
	}
}
