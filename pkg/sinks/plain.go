package sinks

import (
	"errors"
	"io/fs"
	"path"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/secret"
)

// plain is the layout of a target that is one file.
type plain struct {
	path string
	how  manner
}

func (p plain) folder() string { return path.Dir(p.path) }
func (p plain) name() string   { return path.Base(p.path) }
func (p plain) absent() stamps { return stamps{p.path: {}} }
func (p plain) memo() memo     { return memo{p.name(), p.how} }

func (p plain) enter(root folder) (folder, error) { return enter(root, p.folder()) }

func (p plain) checkParts(parts map[string]secret.Value) error {
	if _, ok := parts[WholeFile]; !ok || len(parts) != 1 {
		return errors.New("a file has exactly one part")
	}
	return checkSize(parts)
}

// readState treats a symlink, a FIFO and a socket as absent. It follows and opens none
// of them, and a write replaces them.
func (p plain) readState(dir folder) (State, stamps, error) {
	info, err := dir.lstat(p.name())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return State{}, p.absent(), nil
	case err != nil:
		return State{}, nil, step("look at the file", err)
	}
	seen := stampOf(info)
	if countsAsAbsent(info) {
		return State{}, stamps{p.path: seen}, nil
	}
	if err := checkRegular(info); err != nil {
		return State{}, nil, err
	}
	v, whole, err := content(dir, p.name(), info, maxSize)
	if err != nil {
		return State{}, nil, err
	}
	return State{
		Parts:   map[string]secret.Value{WholeFile: v},
		Mode:    permissions(info),
		Stale:   !whole || p.how.otherOwner(seen),
		Members: p.memo().members(dir),
		Sets:    p.memo().sets(dir),
	}, stamps{p.path: seen}, nil
}

func (p plain) write(dir folder, c Changes) (stamps, error) {
	if c.Empty() {
		return nil, p.memo().writeRecords(dir, c)
	}
	if _, err := p.checkReplaceable(dir); err != nil {
		return nil, err
	}
	var made stamp
	err := p.memo().around(dir, c, func() (err error) {
		made, err = replace(dir, p.name(), c.Parts[WholeFile].Bytes(), p.how)
		return err
	})
	return stamps{p.path: made}, err
}

func (p plain) remove(dir folder) error {
	there, err := p.checkReplaceable(dir)
	if err != nil || !there {
		return err
	}
	if err := dir.remove(p.name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return step("remove the file", err)
	}
	return errors.Join(p.memo().forget(dir), step("sync the folder", dir.sync()))
}

// checkReplaceable refuses objects that we must not replace: a device, and a folder.
// Even an empty folder is refused, because a removal would delete it.
func (p plain) checkReplaceable(dir folder) (there bool, err error) {
	info, err := dir.lstat(p.name())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, step("look at the file", err)
	case countsAsAbsent(info):
		return true, nil
	}
	return true, checkRegular(info)
}

func (p plain) leftovers(dir folder) ([]string, error) {
	entries, err := dir.listEntries()
	if err != nil {
		return nil, step("list the folder", err)
	}
	var names []string
	for _, e := range entries {
		if safefile.IsTempName(e.Name()) && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// countsAsAbsent reports whether an object has no content that could be read or lost. A
// write replaces it.
func countsAsAbsent(info fs.FileInfo) bool {
	return info.Mode()&(fs.ModeSymlink|fs.ModeNamedPipe|fs.ModeSocket) != 0
}

// checkRegular refuses objects that a file must not replace.
func checkRegular(info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return errors.New("is a folder; remove it, or give the file another path")
	default:
		return errors.New("is a device; remove it, or give the file another path")
	}
}
