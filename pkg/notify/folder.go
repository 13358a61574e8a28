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

// folder is the status folder. It belongs to the application as much as to Syncer, so any
// name there may be anything. Therefore Syncer opens no existing file for writing,
// changes none, and follows no symlink. It writes a file under an unpredictable name and
// then renames it.
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

// note is a file for the folder.
type note struct {
	text     []byte
	mode     fs.FileMode // regardless of the umask
	modified time.Time   // zero: now
}

// put atomically replaces the file at name with the note. It does not replace a folder.
// In a sticky folder it does not replace another user's file; the error is then an
// [fs.ErrPermission].
func (d folder) put(name string, n note) error {
	return d.in(func(root *os.Root) error {
		temp := safefile.TempName()
		err := n.create(root, temp)
		if err == nil {
			err = root.Rename(temp, name)
		}
		if err != nil {
			_ = root.Remove(temp) // if this fails too, the next start removes it
		}
		return err
	})
}

// create creates the note under an unused name.
func (n note) create(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(n.text)
	err = errors.Join(err, f.Chmod(n.mode), f.Close())
	if err == nil {
		err = root.Chtimes(name, n.modified, n.modified)
	}
	return err
}

// renew sets the time of a file to now. This also works for another user's file that
// everybody may write to.
func (d folder) renew(name string) error {
	if info, err := d.lstat(name); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, safefile.ErrNotRegular)
	}
	// Without explicit times, the time is now. Everybody who may write to the file may
	// set that.
	return unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(string(d), name), nil, unix.AT_SYMLINK_NOFOLLOW)
}

func (d folder) lstat(name string) (info fs.FileInfo, err error) {
	err = d.in(func(root *os.Root) error { info, err = root.Lstat(name); return err })
	return info, err
}

func (d folder) readFile(name string) (text []byte, err error) {
	const most = 1 << 20 // far more than the size of any note
	err = d.in(func(root *os.Root) error { text, err = safefile.ReadIn(root, name, most); return err })
	return text, err
}

// remove removes a file, if it exists.
func (d folder) remove(name string) error {
	err := d.in(func(root *os.Root) error { return root.Remove(name) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// names lists the regular files with wanted names. It reads the folder in pieces, because
// the folder may hold any number of other files.
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
