package sinks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// layout describes the files of a target. Methods with a parameter dir receive
// the open folder that holds the target.
type layout interface {
	// folder returns that folder's path below the secrets folder.
	folder() string
	// enter opens the folder, once for a whole change. It stays the same folder
	// even if a symlink replaces it.
	enter(root folder) (folder, error)
	// checkParts returns the faults in parts. It touches no files.
	checkParts(parts map[string]secret.Value) error
	readState(dir folder) (State, stamps, error)
	// write returns no stamps if it changed no part.
	write(dir folder, c Changes) (stamps, error)
	remove(dir folder) error
	// absent returns the stamps of a target whose folder is missing, or that was
	// removed.
	absent() stamps
	// leftovers lists the names that interrupted changes left.
	leftovers(dir folder) ([]string, error)
}

// layout checks the target's path and mode, and returns its layout.
func (f *Files) layout(t *targets.Target) (layout, error) {
	name, mode := t.File.Path, t.File.Mode
	if !filepath.IsLocal(name) || path.Clean(name) != name || name == "." {
		return nil, fmt.Errorf("the path %q is not one below the secrets folder", name)
	}
	if strings.Contains("/"+name, "/"+safefile.TempPrefix) {
		return nil, fmt.Errorf("the path %q has a name that begins with %s, as only Syncer's own files may", name, safefile.TempPrefix)
	}
	if mode&^fs.ModePerm != 0 || mode&0o400 == 0 {
		return nil, fmt.Errorf("the mode %v is not one of a file that its owner can read", mode)
	}
	how := manner{mode, f.owner}
	if t.Format == targets.FormatDirectory {
		modes := map[string]fs.FileMode{}
		for _, e := range t.Entries {
			if e.Mode != 0 {
				modes[e.FilePath()] = e.Mode
			}
		}
		return directory{name, how, modes}, nil
	}
	return plain{name, how}, nil
}

// content reads the regular file at name. info is the result of lstat. It returns
// false if the file exists but is unreadable, or is larger than limit.
func content(dir folder, name string, info fs.FileInfo, limit int64) (v secret.Value, whole bool, err error) {
	if info.Size() > limit {
		return secret.Value{}, false, nil
	}
	f, err := dir.open(name)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return secret.Value{}, false, nil
	case err != nil:
		return secret.Value{}, false, step("open the file", err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	opened, err := f.Stat()
	if err != nil {
		return secret.Value{}, false, step("look at the open file", err)
	}
	if stampOf(opened) != stampOf(info) {
		return secret.Value{}, false, errors.New("the file changed while it was read")
	}
	// Read one byte more than expected, to detect a file that grows.
	buf := make([]byte, info.Size()+1)
	n, err := io.ReadFull(f, buf)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return secret.New(buf[:n]), true, nil
	case err == nil:
		err = errors.New("the file grew while it was read")
	default:
		err = step("read the file", err)
	}
	clear(buf)
	return secret.Value{}, false, err
}

// otherOwner reports whether the file's owner differs from the wanted one.
func (how manner) otherOwner(s stamp) bool {
	o := how.owner
	return o != nil && (o.UID != -1 && o.UID != s.UID || o.GID != -1 && o.GID != s.GID)
}

// permissions returns a file's permission bits, including those that no target
// uses.
func permissions(info fs.FileInfo) fs.FileMode { return info.Mode() &^ fs.ModeType }

// checkSize refuses parts that exceed maxSize together.
func checkSize(parts map[string]secret.Value) error {
	total := 0
	for _, v := range parts {
		total += v.Len()
	}
	if total > maxSize {
		return fmt.Errorf("the content has %d bytes, more than the %d that are allowed", total, maxSize)
	}
	return nil
}

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
