package sinks

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/secretsync/syncer/pkg/safefile"
	"github.com/secretsync/syncer/pkg/secret"
)

// directory is the layout of a target that is a folder with one file for each
// part, which all change in the same instant. It is that of the kubelet's
// volumes:
//
//	..2026_01_31_12_00_00.XXXXXXXXXXXXXXXXXXXXXXXXXX/   one version
//	..data -> ..2026_01_31_12_00_00.XXXXXXXXXXXXXXXXXXXXXXXXXX
//	user -> ..data/user
//	password -> ..data/password
//
// A reader that needs several parts of one version resolves ..data once and
// reads below that. Other files in the folder are not ours and stay.
type directory struct {
	path string
	how  manner
}

func (d directory) folder() string { return d.path }
func (d directory) absent() stamps { return stamps{path.Join(d.path, dataLink): {}} }
func (d directory) memo() memo     { return memo{path.Base(d.path), d.how} }

// enter follows no symlink at the target's own name, as plain does not.
func (d directory) enter(root folder) (folder, error) {
	info, err := root.lstat(d.path)
	if err != nil {
		return nil, step("look at the folder", err)
	}
	if !info.IsDir() {
		return nil, errors.New("is not a folder; remove it, or give the folder another path")
	}
	return enter(root, d.path)
}

func (d directory) check(parts map[string]secret.Value) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		switch {
		case name == "" || name == "." || strings.HasPrefix(name, "..") || strings.HasPrefix(name, safefile.TempPrefix):
			errs = append(errs, fmt.Errorf("the name %q is reserved; give the entry another alias", name))
		case strings.ContainsAny(name, "/\x00") || len(name) > maxName:
			errs = append(errs, fmt.Errorf("the name %q cannot be that of a file; give the entry another alias", name))
		}
	}
	return errors.Join(append(errs, checkSize(parts))...)
}

const maxName = 255 // bytes, the limit of Linux file systems

// read reports what is there without a current version, the rest of an
// interrupted removal, as parts that were not read.
func (d directory) read(dir folder) (State, stamps, error) {
	seen := stamps{d.path: look(dir, ".")}
	there, err := scan(dir)
	if err != nil {
		return State{}, nil, err
	}
	if there.current == "" {
		state := State{Stale: true, Parts: map[string]secret.Value{}}
		for _, name := range slices.Concat(there.versions, there.links) {
			state.Parts[name] = secret.Value{}
		}
		if there.data != "" {
			state.Parts[dataLink] = secret.Value{}
		}
		if len(state.Parts) == 0 {
			state = State{}
		}
		return state, seen, nil
	}
	state, err := d.readVersion(dir, there.current, seen)
	if err != nil {
		return State{}, nil, err
	}
	names := slices.Sorted(maps.Keys(state.Parts))
	if len(there.versions) > 1 || !slices.Equal(names, there.links) {
		state.Stale = true
	}
	state.Members = d.memo().read(dir)
	return state, seen, nil
}

// readVersion reads the files of one version, and adds their stamps to seen.
func (d directory) readVersion(dir folder, version string, seen stamps) (state State, err error) {
	state.Parts = map[string]secret.Value{}
	defer func() {
		if err != nil {
			wipe(state.Parts)
		}
	}()
	at := path.Join(d.path, version)
	seen[at] = look(dir, version)
	sub, err := enter(dir, version)
	if err != nil {
		return state, err
	}
	defer sub.close()
	entries, err := sub.list()
	if err != nil {
		return state, step("list the folder "+version, err)
	}
	left := int64(MaxSize)
	for _, e := range entries {
		name := e.Name()
		info, err := sub.lstat(name)
		if err != nil {
			return state, step("look at "+name, err)
		}
		if !info.Mode().IsRegular() {
			state.Stale = true
			continue
		}
		v, whole, err := content(sub, name, info, left)
		if err != nil {
			return state, fmt.Errorf("%s: %w", name, err)
		}
		s := stampOf(info)
		if len(state.Parts) == 0 {
			state.Mode = permissions(info)
		}
		if !whole || d.how.otherOwner(s) || permissions(info) != state.Mode {
			state.Stale = true
		}
		state.Parts[name], seen[path.Join(at, name)] = v, s
		left -= int64(v.Len())
	}
	return state, nil
}

func (d directory) leftovers(dir folder) ([]string, error) {
	there, err := scan(dir)
	old := slices.DeleteFunc(there.versions, func(name string) bool { return name == there.current })
	return append(old, there.temps...), err
}

// look is the stamp of what is at name now; the zero stamp when that cannot
// be told, so that it will differ from any.
func look(dir folder, name string) stamp {
	info, err := dir.lstat(name)
	if err != nil {
		return stamp{}
	}
	return stampOf(info)
}

func wipe(parts map[string]secret.Value) {
	for _, v := range parts {
		v.Wipe()
	}
}
