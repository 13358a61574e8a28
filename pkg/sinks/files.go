package sinks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// Files is the sink for targets that are files below one secrets folder, and, with
// [targets.FormatDirectory], folders of files. It reads and writes nothing outside
// the secrets folder, whatever the targets' paths and symlinks contain. It is safe
// for concurrent use, but not for two simultaneous changes of one target.
//
// A rename replaces a target that is one file, so that a reader sees the old or the
// new file. Its mode does not depend on the umask. A symlink, FIFO or socket at the
// file's name is replaced and never followed.
//
// Files creates missing parent folders with mode 0755, subject to the umask, and
// keeps them. It creates the secrets folder, with mode 0755, if the parent is the
// root of a mounted volume. Elsewhere the application would not see the files.
type Files struct {
	dir    string
	owner  *Owner
	open   func(dir string) (folder, error)
	budget budget
}

// Owner is the user and group to own the files. As in chown(2), −1 leaves either
// unchanged.
type Owner struct{ UID, GID int }

// NewFiles returns the sink for the secrets folder dir. It does not access the
// folder. While the folder is missing, each call that needs it fails. If owner is
// nil, the process owns the files.
func NewFiles(dir string, owner *Owner) *Files {
	return &Files{dir: dir, owner: owner, open: openFolder}
}

// Limit limits the total content of all targets, in bytes. 0 means no limit. A
// target that would exceed the limit keeps its content. Other targets are
// unaffected. Call Limit before the first use.
func (f *Files) Limit(bytes int64) { f.budget.limit = bytes }

// Kept returns the total bytes of all targets, and the limit.
func (f *Files) Kept() (bytes, limit int64) { return f.budget.total(), f.budget.limit }

// OnDisk reports whether written content reaches a disk, as far as that can be
// determined. Kubernetes keeps a Secret volume in memory only.
func (f *Files) OnDisk() bool {
	if _, err := os.Stat(f.dir); err == nil {
		return onDisk(f.dir)
	}
	return onDisk(filepath.Dir(filepath.Clean(f.dir))) // the folder in which it will be created
}

// Read reads the target. A symlink, FIFO or socket counts as absent. Any other
// object at the path of a file is an error. Errors name the target's path.
func (f *Files) Read(ctx context.Context, r records.Record) (State, error) {
	if err := ctx.Err(); err != nil {
		return State{}, err
	}
	state, seen, err := f.readState(r)
	if err != nil {
		if former, blocked := f.blocked(r); blocked {
			return State{Sight: former}, nil
		}
		return State{}, f.failed(r.Spec, err)
	}
	state.Sight = sightOf(r, seen)
	f.budget.is(r.Spec.Key, state.Parts)
	return state, nil
}

func (f *Files) readState(r records.Record) (State, stamps, error) {
	l, err := f.layout(r.Spec)
	if err != nil {
		return State{}, nil, err
	}
	root, err := f.root()
	switch {
	case errors.Is(err, errNotMade):
		return State{}, l.absent(), nil
	case err != nil:
		return State{}, nil, err
	}
	defer root.close()
	dir, err := l.enter(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return State{}, l.absent(), nil
	case err != nil:
		return State{}, nil, err
	}
	defer dir.close()
	// A failed change may be visible but not durable. If its content is correct,
	// nothing will be written, so no later sync would follow.
	if r.Status.WriteFailed || r.Status.RemovalFailed {
		if err := dir.sync(); err != nil {
			return State{}, nil, step("sync the folder", err)
		}
	}
	return l.readState(dir)
}

// Apply makes the changes. When it returns nil, they survive a crash of the
// machine. It does not stop half-way when ctx ends. After an error, readers find
// the target in the old or in the wanted state, never in between. The error names
// the target's path and the failed step. A failure leaves no other files. If their
// removal also fails, the error says so. In a folder of files, leftovers make the
// next State stale.
func (f *Files) Apply(ctx context.Context, r records.Record, c Changes) (records.Sight, error) {
	if err := ctx.Err(); err != nil || c.Empty() && c.Members == nil && c.Sets == nil {
		return r.Status.Sight, err
	}
	undo := func() {}
	if !c.Empty() {
		var err error
		if undo, err = f.budget.reserve(r.Spec.Key, c.Parts); err != nil {
			return r.Status.Sight, f.failed(r.Spec, err)
		}
	}
	done, err := f.apply(r, c)
	if err != nil {
		undo()
	}
	if err != nil || done == nil {
		return r.Status.Sight, f.failed(r.Spec, err)
	}
	return sightOf(r, done), nil
}

func (f *Files) apply(r records.Record, c Changes) (stamps, error) {
	l, err := f.layout(r.Spec)
	if err != nil {
		return nil, err
	}
	if c.Parts != nil {
		if err := l.checkParts(c.Parts); err != nil {
			return nil, err
		}
	}
	root, err := f.root()
	if errors.Is(err, errNotMade) {
		if c.Parts == nil {
			return l.absent(), nil
		}
		root, err = f.makeRoot()
	}
	if err != nil {
		return nil, err
	}
	defer root.close()
	if !c.Empty() && c.Parts != nil {
		if err := f.clearWay(root, r); err != nil {
			return nil, err
		}
	}
	dir, err := l.enter(root)
	if errors.Is(err, fs.ErrNotExist) {
		if c.Parts == nil {
			return l.absent(), nil
		}
		if err := mkdirs(root, l.folder()); err != nil {
			return nil, err
		}
		dir, err = l.enter(root)
	}
	if err != nil {
		return nil, err
	}
	defer dir.close()
	if c.Parts == nil {
		return l.absent(), l.remove(dir)
	}
	return l.write(dir, c)
}

// errNotMade means that the secrets folder does not exist and may be created.
var errNotMade = errors.New("the secrets folder has not been made yet")

// root opens the secrets folder.
func (f *Files) root() (folder, error) {
	root, err := f.open(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		if isMount(filepath.Dir(filepath.Clean(f.dir))) {
			return nil, errNotMade
		}
		// A folder created here would not be a volume, and nobody would see the
		// files.
		return nil, fmt.Errorf("%w; mount a volume there, or make the folder", step("open the secrets folder", err))
	}
	if err != nil {
		return nil, step("open the secrets folder", err)
	}
	return root, nil
}

// Missing returns an error if the secrets folder does not exist, and may not be created.
func (f *Files) Missing() error {
	root, err := f.root()
	switch {
	case err == nil:
		root.close()
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", f.dir, err)
	}
	return nil
}

// makeRoot creates the secrets folder durably, and opens it.
func (f *Files) makeRoot() (folder, error) {
	parent, name := filepath.Split(filepath.Clean(f.dir))
	volume, err := f.open(parent)
	if err != nil {
		return nil, step("open the volume of the secrets folder", err)
	}
	defer volume.close()
	if err := mkdirs(volume, name); err != nil {
		return nil, err
	}
	// The application runs as another user, so the umask must not apply.
	if err := volume.chmod(name, 0o755); err != nil {
		return nil, step("set the mode of the secrets folder", err)
	}
	return f.root()
}

// isMount reports whether a volume is mounted at the folder. It returns false for
// the file system root.
func isMount(dir string) bool {
	here, err := os.Stat(dir)
	above, aboveErr := os.Stat(filepath.Join(dir, ".."))
	if err != nil || aboveErr != nil || os.SameFile(here, above) {
		return false
	}
	return stampOf(here).Dev != stampOf(above).Dev || isBound(dir)
}

// enter opens a folder below root.
func enter(root folder, name string) (folder, error) {
	dir, err := root.sub(name)
	if err != nil {
		return nil, step("open the folder "+name, err)
	}
	return dir, nil
}

// mkdirs durably creates a folder below root, with its parents.
func mkdirs(root folder, name string) error {
	parent := "."
	for segment := range strings.SplitSeq(name, "/") {
		here := path.Join(parent, segment)
		switch err := root.mkdir(here); {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return step("make the folder "+here, err)
		default:
			if err := syncFolder(root, parent); err != nil {
				_ = root.remove(here) // empty; the next attempt creates and syncs it
				return step("sync the folder "+parent, err)
			}
		}
		parent = here
	}
	return nil
}

func syncFolder(root folder, name string) error {
	dir, err := root.sub(name)
	if err != nil {
		return err
	}
	defer dir.close()
	return dir.sync()
}

// failed prefixes an error with the target's full path.
func (f *Files) failed(t *targets.Target, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", filepath.Join(f.dir, t.File.Path), err)
}

// Altered returns the targets that changed since the last read or write, or whose
// last change failed. It opens no file. A stat must show the same device, inode,
// size, times, mode and owner. Every later write, rename, chmod or touch changes at
// least one of these. An old kernel may give the same time to two changes within a
// few milliseconds. There, only the next Read detects an in-place change of the
// same size so soon after ours.
//
// Altered also reports targets whose pending removal failed.
//
// Each result is a hint: Read may find the target unchanged. Altered does not
// report a target that was never read, because it has nothing to compare. It does
// not report a target that was missing or removed and is still absent, so a removed
// target costs nothing. If a stat fails, Altered reports the target, and Read
// returns the error.
func (f *Files) Altered(all iter.Seq[records.Record]) []targets.Key {
	root, err := f.root()
	if err == nil {
		defer root.close()
	}
	var altered []targets.Key
	for r := range all {
		last, seen := parseSight(r.Status.Version)
		seen = seen && last.path == r.Spec.File.Path
		failed := r.Status.WriteFailed || r.Status.RemovalFailed
		if failed || seen && (err != nil || len(r.Status.Former) > 0 || !same(root, last)) {
			altered = append(altered, r.Spec.Key)
		}
	}
	return altered
}

// same reports whether everything is unchanged. It returns false for anything that
// it cannot examine.
func same(root folder, last sight) bool {
	return last.unchanged(func(name string) (now stamp, known bool) {
		info, err := root.lstat(name)
		if err == nil {
			now = stampOf(info)
		}
		return now, err == nil || errors.Is(err, fs.ErrNotExist)
	})
}

// Clean removes temporary files that a killed process left next to the targets. In
// the folder of a [targets.FormatDirectory] target it also removes temporary
// symlinks and versions other than the current one. It keeps all other files. A
// missing folder needs no cleaning. Errors are collected and do not stop the
// cleaning. An invalid target, one with Faults, is skipped.
//
// Call it at startup, before the first Apply. If another process is changing the
// same targets, that one change fails and is then repeated. Therefore there is no
// lock.
func (f *Files) Clean(ctx context.Context, ts []*targets.Target) error {
	root, err := f.root()
	switch {
	case errors.Is(err, errNotMade):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", f.dir, err)
	}
	defer root.close()
	var errs []error
	cleaned := map[string]bool{} // cleaned folders
	for _, t := range ts {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if len(t.Faults) > 0 { // its path and mode may be unknown
			continue
		}
		l, err := f.layout(t)
		if err == nil && !cleaned[l.folder()] {
			cleaned[l.folder()] = true
			err = clean(root, l)
		}
		errs = append(errs, f.failed(t, err))
	}
	return errors.Join(errs...)
}

// clean removes the leftovers in one target's folder.
func clean(root folder, l layout) error {
	dir, err := l.enter(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	defer dir.close()
	names, err := l.leftovers(dir)
	if err != nil || len(names) == 0 {
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, step("remove the leftover "+name, dir.removeAll(name)))
	}
	return errors.Join(append(errs, step("sync the folder", dir.sync()))...)
}
