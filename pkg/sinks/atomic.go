package sinks

import (
	"errors"
	"io/fs"

	"github.com/secretsync/syncer/internal/safefile"
)

// manner describes how to create files: their permission bits, regardless of the
// umask, and their owner. A nil owner means the owner of the process.
type manner struct {
	mode  fs.FileMode
	owner *Owner
}

// replace atomically puts a file with the content at name. Readers open either the
// old or the new file. After replace returns nil, the new file survives a crash of
// the machine. On an error the old file remains, or the new one if only the last
// steps failed, and no other file. If the temporary file cannot be removed, it is
// emptied.
func replace(dir folder, name string, content []byte, how manner) (stamp, error) {
	temp := safefile.TempName()
	f, made, err := how.create(dir, temp, content)
	if err == nil {
		err = step("rename the temporary file", dir.rename(temp, name))
	}
	if err != nil {
		err = errors.Join(err, discard(dir, temp, f))
	}
	if f != nil { // keep it open, because its mode may forbid reopening
		err = errors.Join(err, step("close the file", f.Close()))
	}
	if err == nil {
		err = step("sync the folder", dir.sync())
	}
	if err != nil {
		return stamp{}, err
	}
	// The rename changed the ctime. The other fields are those of the write, so
	// that a later change is detected.
	if info, err := dir.lstat(name); err == nil {
		made.Ctime = stampOf(info).Ctime
	}
	return made, nil
}

// create creates a new file. When it returns no error, the file is complete and
// durable. On an error a partial file may remain. If the file was created, it is
// still open.
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
	// Set the mode before the owner. After the owner changes, setting the mode
	// requires an additional capability.
	if err := f.Chmod(how.mode); err != nil {
		return stamp{}, step("set the mode", err)
	}
	if how.owner != nil {
		if err := f.Chown(how.owner.UID, how.owner.GID); err != nil {
			return stamp{}, step("set the owner", err)
		}
	}
	// Without this sync, a file system may persist the later rename before the
	// content. A crash of the machine would then leave an empty file.
	if err := f.Sync(); err != nil {
		return stamp{}, step("sync the file", err)
	}
	info, err := f.Stat()
	if err != nil {
		return stamp{}, step("look at the file", err)
	}
	return stampOf(info), nil
}

// discard removes what a failed change left at name, if anything. If it cannot
// remove an open file, it empties the file.
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
