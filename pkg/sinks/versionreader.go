package sinks

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// deepest bounds the nesting of folders that are read.
const deepest = 64

// versionReader reads the files of a version, folder by folder.
type versionReader struct {
	directory
	at    string // path of the version
	seen  stamps
	left  int64 // bytes that may still be read
	state State
}

// read reads the folder name in dir. Its parts are below prefix.
func (r *versionReader) read(dir folder, name, prefix string) error {
	r.seen[path.Join(r.at, prefix)] = look(dir, name)
	sub, err := enter(dir, name)
	if err != nil {
		return err
	}
	defer sub.close()
	entries, err := sub.list()
	if err != nil {
		return step("list the folder "+name, err)
	}
	for _, e := range entries {
		part := path.Join(prefix, e.Name())
		info, err := sub.lstat(e.Name())
		switch {
		case err != nil:
			return step("look at "+part, err)
		case info.IsDir() && strings.Count(part, "/") < deepest:
			before := len(r.state.Parts)
			err = r.read(sub, e.Name(), part)
			r.state.Stale = r.state.Stale || len(r.state.Parts) == before // empty: not ours
		case info.Mode().IsRegular():
			err = r.file(sub, e.Name(), part, info)
		default:
			r.state.Stale = true
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// file reads one part.
func (r *versionReader) file(dir folder, name, part string, info fs.FileInfo) error {
	v, whole, err := content(dir, name, info, r.left)
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	s, mode := stampOf(info), r.modes[part]
	if mode == 0 {
		r.state.Mode = cmp.Or(r.state.Mode, permissions(info))
		mode = r.state.Mode
	}
	if !whole || r.how.otherOwner(s) || permissions(info) != mode {
		r.state.Stale = true
	}
	r.state.Parts[part], r.seen[path.Join(r.at, part)] = v, s
	r.left -= int64(v.Len())
	return nil
}
