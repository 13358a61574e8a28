package sinks

import (
	"errors"
	"io/fs"

	"github.com/secretsync/syncer/pkg/safefile"
)

// manner is how files are made: their permission bits, whatever the umask,
// and their owner, nil for that of the process.
type manner struct {
	mode  fs.FileMode
	owner *Owner
}

// replace puts a file with the content at name in one instant: readers open
// the old one or the new one, and after replace has returned nil a crash of
// the machine brings back the new one. When it fails, the old one is still
// there, or the new one if only the last steps failed, and nothing else; if the
// temporary file cannot be removed, it is emptied.
func replace(dir folder, name string, content []byte, how manner) (stamp, error) {
	temp := safefile.TempName()
	f, made, err := how.create(dir, temp, content)
	if err == nil {
		err = step("rename the temporary file", dir.rename(temp, name))
	}
	if err != nil {
		err = errors.Join(err, discard(dir, temp, f))
	}
	if f != nil { // open until now, since its mode may forbid to open it again
		err = errors.Join(err, step("close the file", f.Close()))
	}
	if err == nil {
		err = step("sync the folder", dir.sync())
	}
	if err != nil {
		return stamp{}, err
	}
	// The rename changed the ctime. All else is compared with what was
	// written, so a change made since then shows as one.
	if info, err := dir.lstat(name); err == nil {
		made.Ctime = stampOf(info).Ctime
	}
	return made, nil
}

// create makes a new file that is complete and on the disk when create
// returns no error. When it fails, a part of it may be left. The file, if it
// was made, is open.
func (how manner) create(dir folder, name string, content []byte) (f file, made stamp, err error) {
	if f, err = dir.create(name); err != nil {
		return nil, stamp{}, step("create the file", err)
	}
	made, err = how.fill(f, content)
	return f, made, err
}

// fill completes a new file.
func (how manner) fill(f file, content []byte) (stamp, error) {
	if _, err := f.Write(content); err != nil {
		return stamp{}, step("write the file", err)
	}
	// The mode comes before the owner: whoever gives a file away needs one
	// more capability to change its mode then.
	if err := f.Chmod(how.mode); err != nil {
		return stamp{}, step("set the mode", err)
	}
	if how.owner != nil {
		if err := f.Chown(how.owner.UID, how.owner.GID); err != nil {
			return stamp{}, step("set the owner", err)
		}
	}
	// Without this sync a file system may put the later rename on the disk
	// before the content, and a crash of the machine leaves an empty file.
	if err := f.Sync(); err != nil {
		return stamp{}, step("sync the file", err)
	}
	info, err := f.Stat()
	if err != nil {
		return stamp{}, step("look at the file", err)
	}
	return stampOf(info), nil
}

// discard removes what a failed change has left at name, if anything. What
// cannot be removed is emptied, if it is an open file.
func discard(dir folder, name string, f file) error {
	err := dir.remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err = step("remove the temporary file "+name, err)
	if f == nil {
		return err
	}
	return errors.Join(err, step("empty the temporary file "+name, f.Truncate(0)))
}
