package sinks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/secretsync/syncer/pkg/records"
	"github.com/secretsync/syncer/pkg/targets"
)

// Files is the sink for targets that are files below one secrets folder, and,
// with [targets.FormatDirectory], folders of files. Nothing outside the folder
// is read or written, whatever the targets' paths and the symlinks on the way
// say. It is safe for use by several goroutines, but not for two changes of
// one target at a time.
//
// A target that is one file is replaced by a rename, so that a reader sees the
// old file or the new one; its mode does not depend on the umask. A symlink at
// the file's own name is replaced, not followed, and so is a FIFO or a socket. Missing folders on the way
// are made, with mode 0755 as the umask leaves it, and stay. So is the secrets
// folder itself, with mode 0755, in a folder that is the root of a mounted
// volume; elsewhere the files would land where the application does not see
// them.
type Files struct {
	dir    string
	owner  *Owner
	open   func(dir string) (folder, error)
	budget budget
}

// Owner is the user and the group that files are given to; −1 leaves either
// as it is, as in chown(2).
type Owner struct{ UID, GID int }

// NewFiles makes the sink for the secrets folder dir, without looking at it: a
// folder that is missing is an error of each call that needs it, until it is
// there. With a nil owner files belong to the process.
func NewFiles(dir string, owner *Owner) *Files {
	return &Files{dir: dir, owner: owner, open: openFolder}
}

// Limit bounds what all targets hold together, in bytes; 0 is no bound. A target
// that would go beyond it keeps what it has, and the others go on. Call it before
// the first use.
func (f *Files) Limit(bytes int64) { f.budget.limit = bytes }

// Kept returns how many bytes all targets hold together, and the bound.
func (f *Files) Kept() (bytes, limit int64) { return f.budget.total(), f.budget.limit }

// OnDisk reports whether what is written comes to rest on a disk, as far as that
// can be known: a Secret in a volume of Kubernetes is in memory only.
func (f *Files) OnDisk() bool {
	if _, err := os.Stat(f.dir); err == nil {
		return onDisk(f.dir)
	}
	return onDisk(filepath.Dir(filepath.Clean(f.dir))) // in which it is made
}

// Read finds what is there. Anything but a file where a file must be is an
// error, save a symlink, a FIFO or a socket, which is nothing. An error names the target's path.
func (f *Files) Read(ctx context.Context, r records.Record) (State, error) {
	if err := ctx.Err(); err != nil {
		return State{}, err
	}
	state, seen, err := f.read(r)
	if err != nil {
		return State{}, f.failed(r.Spec, err)
	}
	state.Sight = sightOf(r, seen)
	f.budget.is(r.Spec.Key, state.Parts)
	return state, nil
}

func (f *Files) read(r records.Record) (State, stamps, error) {
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
	// What a failed change has done may be there, but not yet for good; if
	// it is right, nothing will be written and no later sync comes.
	if r.Status.WriteFailed || r.Status.RemovalFailed {
		if err := dir.sync(); err != nil {
			return State{}, nil, step("sync the folder", err)
		}
	}
	return l.read(dir)
}

// Apply makes the changes, and returns nil only when they will survive a crash
// of the machine. It does not stop half-way when ctx ends. After an error
// readers find the target as before or as wanted, never in between; the error
// names the target's path and the step that failed. A failure leaves nothing
// behind; if removing the rest failed as well, the error says so, and what is
// left of a folder of files makes the next State stale.
func (f *Files) Apply(ctx context.Context, r records.Record, c Changes) (records.Sight, error) {
	if err := ctx.Err(); err != nil || c.Empty() && c.Members == nil && c.Sets == nil {
		return r.Status.Sight, err
	}
	undo := func() {}
	if !c.Empty() {
		var err error
		if undo, err = f.budget.take(r.Spec.Key, c.Parts); err != nil {
			return r.Status.Sight, f.failed(r.Spec, err)
		}
	}
	done, err := f.apply(r.Spec, c)
	if err != nil {
		undo()
	}
	if err != nil || done == nil {
		return r.Status.Sight, f.failed(r.Spec, err)
	}
	return sightOf(r, done), nil
}

func (f *Files) apply(t *targets.Target, c Changes) (stamps, error) {
	l, err := f.layout(t)
	if err != nil {
		return nil, err
	}
	if c.Parts != nil {
		if err := l.check(c.Parts); err != nil {
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

// errNotMade is that the secrets folder is missing and may be made.
var errNotMade = errors.New("the secrets folder has not been made yet")

// root opens the secrets folder.
func (f *Files) root() (folder, error) {
	root, err := f.open(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		if isMount(filepath.Dir(filepath.Clean(f.dir))) {
			return nil, errNotMade
		}
		// Made here, it would be no volume, and nobody would see the files.
		return nil, fmt.Errorf("%w; mount a volume there, or make the folder", step("open the secrets folder", err))
	}
	if err != nil {
		return nil, step("open the secrets folder", err)
	}
	return root, nil
}

// makeRoot makes the secrets folder, for good, and opens it.
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
	if err := volume.chmod(name, 0o755); err != nil { // whatever the umask: the application is another user
		return nil, step("set the mode of the secrets folder", err)
	}
	return f.root()
}

// isMount reports whether a volume is mounted at the folder. The root of all is
// none.
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

// mkdirs makes a folder below root, and those on the way, for good.
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
				_ = root.remove(here) // empty; the next attempt makes and syncs it
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

// failed puts the target's full path in front of an error.
func (f *Files) failed(t *targets.Target, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", filepath.Join(f.dir, t.File.Path), err)
}
