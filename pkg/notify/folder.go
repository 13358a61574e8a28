package notify

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/secretsync/syncer/internal/safefile"
)

// folder is the status folder. It belongs to the application as much as to
// Syncer: whatever stands at a name there may be anything. So nothing that is
// there is opened for writing or changed, no symlink is followed, and what
// Syncer writes comes by a rename from a name that nobody can predict.
type folder string

// in calls f with the open folder.
func (d folder) in(f func(*os.Root) error) error {
	root, err := safefile.OpenRoot(string(d))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := f(root); err != nil {
		return fmt.Errorf("%s: %w", d, err)
	}
	return nil
}

// note is a file to be put into the folder.
type note struct {
	text     []byte
	mode     fs.FileMode // whatever the umask
	modified time.Time   // zero: now
}

// put has the note at name in one instant, in the place of what is there.
// Nothing takes the place of a folder, and in a sticky folder nothing takes
// that of another user's file; the error is an [fs.ErrPermission] then.
func (d folder) put(name string, n note) error {
	return d.in(func(root *os.Root) error {
		temp := safefile.TempName()
		err := n.create(root, temp)
		if err == nil {
			err = root.Rename(temp, name)
		}
		if err != nil {
			_ = root.Remove(temp) // if that fails too, the next start does it
		}
		return err
	})
}

// create makes the note at a name that is free.
func (n note) create(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(n.text)
	err = errors.Join(err, f.Chmod(n.mode), f.Close())
	if err == nil && !n.modified.IsZero() {
		err = root.Chtimes(name, n.modified, n.modified)
	}
	return err
}

// renew sets the time of a file to now, also of another user's that all may
// write to.
func (d folder) renew(name string) error {
	if info, err := d.lstat(name); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, safefile.ErrNotRegular)
	}
	// Without times it is now, which whoever may write to the file may set.
	return unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(string(d), name), nil, unix.AT_SYMLINK_NOFOLLOW)
}

func (d folder) lstat(name string) (info fs.FileInfo, err error) {
	err = d.in(func(root *os.Root) error { info, err = root.Lstat(name); return err })
	return info, err
}

func (d folder) read(name string) (text []byte, err error) {
	const most = 1 << 20 // far more than any note has
	err = d.in(func(root *os.Root) error { text, err = safefile.ReadIn(root, name, most); return err })
	return text, err
}

// remove removes a file, if it is there.
func (d folder) remove(name string) error {
	err := d.in(func(root *os.Root) error { return root.Remove(name) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// names lists the regular files whose names are wanted, and reads the folder
// in pieces, since it may hold any number of others.
func (d folder) names(wanted func(string) bool) (names []string, err error) {
	err = d.in(func(root *os.Root) error {
		f, err := root.Open(".")
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // was only read
		for {
			entries, err := f.ReadDir(256)
			for _, e := range entries {
				if e.Type().IsRegular() && wanted(e.Name()) {
					names = append(names, e.Name())
				}
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	return names, err
}
