package sinks

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// overwrite writes text into the file in place until its time differs: an old
// kernel's clock moves every few milliseconds only.
func overwrite(t *testing.T, name, text string) {
	t.Helper()
	before, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	for now := before; now.ModTime().Equal(before.ModTime()); {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if now, err = os.Stat(name); err != nil {
			t.Fatal(err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isAltered(files *keeper, target *targets.Target) bool {
	return slices.Contains(files.Altered([]*targets.Target{target}), target.Key)
}

// alterations of a target whose part lies at name, below its folder dir.
var fileAlterations = map[string]func(t *testing.T, dir, name string){
	"removed":         func(t *testing.T, _, name string) { must(t, os.Remove(name)) },
	"same size":       func(t *testing.T, _, name string) { overwrite(t, name, "TEXT") },
	"same content":    func(t *testing.T, _, name string) { overwrite(t, name, "text") },
	"emptied":         func(t *testing.T, _, name string) { must(t, os.Truncate(name, 0)) },
	"mode":            func(t *testing.T, _, name string) { must(t, os.Chmod(name, 0o644)) },
	"time set back":   func(t *testing.T, _, name string) { must(t, os.Chtimes(name, time.Time{}, time.Unix(1, 0))) },
	"folder replaced": func(t *testing.T, dir, _ string) { must(t, os.Rename(dir, dir+"2")) },
	"other file there": func(t *testing.T, _, name string) {
		must(t, os.WriteFile(name+"2", []byte("text"), 0o640))
		must(t, os.Rename(name+"2", name))
	},
	"symlink there": func(t *testing.T, _, name string) {
		must(t, os.Rename(name, name+"2"))
		must(t, os.Symlink(filepath.Base(name)+"2", name))
	},
	"folder there": func(t *testing.T, _, name string) {
		must(t, os.Remove(name))
		must(t, os.Mkdir(name, 0o755))
	},
}

var directoryAlterations = map[string]func(t *testing.T, dir, name string){
	"symlink removed": func(t *testing.T, dir, _ string) { must(t, os.Remove(filepath.Join(dir, "user"))) },
	"symlink replaced": func(t *testing.T, dir, _ string) {
		fileAlterations["other file there"](t, dir, filepath.Join(dir, "user"))
	},
	"..data removed":  func(t *testing.T, dir, _ string) { must(t, os.Remove(filepath.Join(dir, "..data"))) },
	"version removed": func(t *testing.T, _, name string) { must(t, os.RemoveAll(filepath.Dir(name))) },
	"file added": func(t *testing.T, _, name string) {
		must(t, os.WriteFile(filepath.Join(filepath.Dir(name), "more"), nil, 0o600))
	},
}

func TestAltered(t *testing.T) {
	for _, target := range []*targets.Target{fileTarget("app/a", 0o640), directoryTarget("app/a", 0o640)} {
		alterations := []map[string]func(t *testing.T, dir, name string){fileAlterations}
		change := rewrite(WholeFile, "text")
		if target.Format == targets.FormatDirectory {
			alterations = append(alterations, directoryAlterations)
			change = rewrite("user", "text", "word", "text")
		}
		for _, list := range alterations {
			for name, alter := range list {
				t.Run(string(target.Format)+"/"+name, func(t *testing.T) { testAltered(t, target, change, alter) })
			}
		}
	}
}

// testAltered alters the target after a write of one sink, which another has
// read.
func testAltered(t *testing.T, target *targets.Target, change Changes, alter func(t *testing.T, dir, name string)) {
	dir := t.TempDir()
	writer, reader, stranger := newKeeper(dir, nil), newKeeper(dir, nil), newKeeper(dir, nil)
	apply(t, writer, target, change)
	read(t, reader, target)
	for _, files := range []*keeper{writer, reader, stranger} {
		if isAltered(files, target) {
			t.Fatal("reported before it was altered")
		}
	}
	folder, name := filepath.Join(dir, "app"), filepath.Join(dir, "app/a")
	if target.Format == targets.FormatDirectory {
		folder = name
		real, err := filepath.EvalSymlinks(filepath.Join(name, "user"))
		must(t, err)
		name = real
	}
	alter(t, folder, name)
	for _, files := range []*keeper{writer, reader} {
		for range 2 {
			if !isAltered(files, target) {
				t.Error("not reported")
			}
		}
	}
	if isAltered(stranger, target) {
		t.Error("reported, and was never read")
	}
	if _, err := reader.Read(t.Context(), target); err == nil && isAltered(reader, target) {
		t.Error("reported after it was read again")
	}
}

func TestAlteredKnowsAbsence(t *testing.T) {
	for _, target := range []*targets.Target{fileTarget("app/a", 0o640), directoryTarget("app/a", 0o640)} {
		dir := t.TempDir()
		files, other := newKeeper(dir, nil), newKeeper(dir, nil)
		name := WholeFile
		if target.Format == targets.FormatDirectory {
			name = "user"
		}
		read(t, files, target)
		if isAltered(files, target) {
			t.Error("a missing target is reported, and nothing changed since the last Read")
		}
		apply(t, other, target, rewrite(name, "text"))
		if !isAltered(files, target) {
			t.Error("a target that appears is not reported")
		}
		apply(t, files, target, removal(name))
		if isAltered(files, target) {
			t.Error("a removed target is reported")
		}
		read(t, files, target)
		if isAltered(files, target) {
			t.Error("a removed target is reported after a Read")
		}
		apply(t, other, target, rewrite(name, "text"))
		if !isAltered(files, target) {
			t.Error("a removed target that is back is not reported")
		}
	}
}

// What happens to a new file before the sink has looked at it a last time is
// not taken for its own doing.
func TestAlteredDuringWrite(t *testing.T) {
	for what, alter := range map[string]func(name string) error{
		"content": func(name string) error { return os.WriteFile(name, []byte("other"), 0o640) },
		"mode":    func(name string) error { return os.Chmod(name, 0o666) },
		"removed": os.Remove,
	} {
		dir := t.TempDir()
		f := &faults{}
		f.hook = func(call string) {
			if call == "sync folder" {
				must(t, alter(filepath.Join(dir, "a")))
			}
		}
		files, target := f.files(dir, nil), fileTarget("a", 0o640)
		apply(t, files, target, rewrite(WholeFile, "text"))
		if !isAltered(files, target) {
			t.Errorf("%s: not reported", what)
		}
	}
}

// Keys come in the order of the targets, and only of those asked for.
func TestAlteredKeys(t *testing.T) {
	dir := t.TempDir()
	files := newKeeper(dir, nil)
	var all []*targets.Target
	for _, name := range []string{"c", "a", "b"} {
		target := fileTarget(name, 0o640)
		target.Key = targets.FileKey(name)
		apply(t, files, target, rewrite(WholeFile, "text"))
		all = append(all, target)
	}
	must(t, os.Remove(filepath.Join(dir, "c")))
	must(t, os.Remove(filepath.Join(dir, "b")))
	if got, want := files.Altered(all), []targets.Key{"file/c", "file/b"}; !slices.Equal(got, want) {
		t.Errorf("Altered gives %q, want %q", got, want)
	}
	if got := files.Altered(all[1:2]); len(got) != 0 {
		t.Errorf("Altered gives %q", got)
	}
	if got := newKeeper(filepath.Join(dir, "missing"), nil).Altered(all); len(got) != 0 {
		t.Errorf("a sink that has seen nothing gives %q", got)
	}
	must(t, os.RemoveAll(dir))
	if got := files.Altered(all); len(got) != 3 {
		t.Errorf("without the secrets folder Altered gives %q", got)
	}
}

// When nobody can tell whether a target is still missing, Read must.
func TestAlteredCannotTell(t *testing.T) {
	f := &faults{err: errFault}
	files, target := f.files(t.TempDir(), nil), fileTarget("a", 0o640)
	read(t, files, target)
	f.hook = func(call string) {
		if call == "lstat" {
			f.fail = len(f.calls)
		}
	}
	if !isAltered(files, target) {
		t.Error("not reported")
	}
}

// A target with another path is another one, whatever its key.
func TestAlteredAfterAMove(t *testing.T) {
	dir := t.TempDir()
	files := newKeeper(dir, nil)
	apply(t, files, fileTarget("a", 0o640), rewrite(WholeFile, "text"))
	must(t, os.Remove(filepath.Join(dir, "a")))
	if isAltered(files, fileTarget("b", 0o640)) {
		t.Error("a path that was never read is reported")
	}
}
