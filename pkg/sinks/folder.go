package sinks

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/secretsync/syncer/internal/safefile"
)

// folder is one open directory, and the sink's only access to the operating system.
// Names are relative to it. They cannot leave it through ".." or a symlink.
type folder interface {
	sub(name string) (folder, error) // opens a subfolder
	mkdir(name string) error         // 0755, subject to the umask
	chmod(name string, mode fs.FileMode) error
	create(name string) (file, error) // new, 0600, for writing
	open(name string) (file, error)   // for reading; does not block
	lstat(name string) (fs.FileInfo, error)
	listEntries() ([]fs.DirEntry, error) // sorted by name
	symlink(target, name string) error
	readlink(name string) (string, error)
	rename(from, to string) error
	remove(name string) error
	removeAll(name string) error // a folder with all its contents
	sync() error                 // makes changes of names durable
	close()
}

// file is an open regular file.
type file interface {
	io.ReadWriteCloser
	Stat() (fs.FileInfo, error)
	Chmod(fs.FileMode) error
	Chown(uid, gid int) error
	Truncate(size int64) error
	Sync() error
}

// mostEntries bounds the entries to read from a folder, because other programs may
// fill it.
const mostEntries = 100_000

// osFolder is the implementation on the file system.
type osFolder struct{ root *os.Root }

// openFolder opens a directory by any path.
func openFolder(dir string) (folder, error) {
	root, err := safefile.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return osFolder{root}, nil
}

func (d osFolder) sub(name string) (folder, error) {
	root, err := safefile.OpenRootIn(d.root, name)
	if err != nil {
		return nil, err
	}
	return osFolder{root}, nil
}

func (d osFolder) mkdir(name string) error { return d.root.Mkdir(name, 0o755) }

func (d osFolder) chmod(name string, mode fs.FileMode) error { return d.root.Chmod(name, mode) }

func (d osFolder) create(name string) (file, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// open does not block if a FIFO has replaced the file.
func (d osFolder) open(name string) (file, error) {
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d osFolder) lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }

func (d osFolder) listEntries() ([]fs.DirEntry, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(mostEntries + 1)
	switch {
	case errors.Is(err, io.EOF): // the folder is empty
		err = nil
	case len(entries) > mostEntries:
		return nil, fmt.Errorf("it has more than %d entries; remove entries that are not needed", mostEntries)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}

func (d osFolder) symlink(target, name string) error    { return d.root.Symlink(target, name) }
func (d osFolder) readlink(name string) (string, error) { return d.root.Readlink(name) }
func (d osFolder) rename(from, to string) error         { return d.root.Rename(from, to) }
func (d osFolder) remove(name string) error             { return d.root.Remove(name) }
func (d osFolder) removeAll(name string) error          { return d.root.RemoveAll(name) }
func (d osFolder) close()                               { _ = d.root.Close() } // read-only

// sync ignores the error of a file system that cannot sync folders, because no
// other call could do more.
func (d osFolder) sync() error {
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// step adds the name of the failed step. It removes the path in the operating
// system's error, which is temporary or relative. The caller adds the target's
// path.
func step(what string, err error) error {
	if err == nil {
		return nil
	}
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("%s: %w", what, err)
}
