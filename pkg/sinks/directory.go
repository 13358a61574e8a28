package sinks

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// directory is the layout of a target that is a folder with one file for each part.
// All parts change atomically. The layout equals that of the kubelet's volumes:
//
//	..2026_01_31_12_00_00.XXXXXXXXXXXXXXXXXXXXXXXXXX/   one version
//	..data -> ..2026_01_31_12_00_00.XXXXXXXXXXXXXXXXXXXXXXXXXX
//	user -> ..data/user
//	password -> ..data/password
//	tls -> ..data/tls, for the parts tls/crt and tls/key
//
// A reader that needs several parts of one version resolves ..data once and reads
// below the result. Other files in the folder are foreign and stay.
type directory struct {
	path  string
	how   manner
	modes map[string]fs.FileMode // of parts with a separate mode
}

// of returns the manner of a part's file.
func (d directory) of(part string) manner {
	return manner{cmp.Or(d.modes[part], d.how.mode), d.how.owner}
}

// linked returns the names in the folder that show the parts, in ascending order. A
// part in a subfolder is shown by the subfolder's name.
func linked(parts map[string]secret.Value) (names []string) {
	for part := range parts {
		name, _, _ := strings.Cut(part, "/")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (d directory) folder() string { return d.path }
func (d directory) absent() stamps { return stamps{path.Join(d.path, dataLink): {}} }
func (d directory) memo() memo     { return memo{path.Base(d.path), d.how} }

// enter opens the target's folder. Like plain, it does not follow a symlink at the
// target's name.
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

func (d directory) checkParts(parts map[string]secret.Value) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if strings.Count(name, "/") > targets.MaxFolders {
			errs = append(errs, fmt.Errorf("the path %q has more than %d folders; give the entry another path", name, targets.MaxFolders))
		}
		for segment := range strings.SplitSeq(name, "/") {
			switch {
			case segment == "" || segment == "." || strings.HasPrefix(segment, "..") || strings.HasPrefix(segment, safefile.TempPrefix):
				errs = append(errs, fmt.Errorf("the name %q is reserved; give the entry another alias or path", name))
			case strings.ContainsRune(segment, 0) || len(segment) > targets.MaxFileName:
				errs = append(errs, fmt.Errorf("the name %q cannot be that of a file; give the entry another alias or path", name))
			}
		}
	}
	return errors.Join(append(errs, checkSize(parts))...)
}

// readState reads the target. Without a current version, as after an interrupted
// removal, it reports the leftovers as unread parts.
func (d directory) readState(dir folder) (State, stamps, error) {
	seen := stamps{d.path: stampAt(dir, ".")}
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
	if len(there.versions) > 1 || !slices.Equal(linked(state.Parts), there.links) {
		state.Stale = true
	}
	state.Members, state.Sets = d.memo().members(dir), d.memo().sets(dir)
	return state, seen, nil
}

// readVersion reads the files of one version, and adds their stamps to seen.
func (d directory) readVersion(dir folder, version string, seen stamps) (State, error) {
	r := versionReader{directory: d, at: path.Join(d.path, version), seen: seen, left: maxSize, state: State{Parts: map[string]secret.Value{}}}
	if err := r.readFolder(dir, version, ""); err != nil {
		secret.Wipe(r.state.Parts)
		return State{}, err
	}
	r.state.Mode = cmp.Or(r.state.Mode, d.how.mode) // unless every part has a separate mode
	return r.state, nil
}

func (d directory) leftovers(dir folder) ([]string, error) {
	there, err := scan(dir)
	old := slices.DeleteFunc(there.versions, func(name string) bool { return name == there.current })
	return append(old, there.temps...), err
}

// stampAt returns the current stamp of name. If it cannot be determined, stampAt returns
// the zero stamp, which differs from every other.
func stampAt(dir folder, name string) stamp {
	info, err := dir.lstat(name)
	if err != nil {
		return stamp{}
	}
	return stampOf(info)
}

// versionReader reads the files of a version, folder by folder.
type versionReader struct {
	directory
	at    string // path of the version
	seen  stamps
	left  int64 // bytes that may still be read
	state State
}

// readFolder reads the folder name in dir. Its parts are below prefix.
func (r *versionReader) readFolder(dir folder, name, prefix string) error {
	r.seen[path.Join(r.at, prefix)] = stampAt(dir, name)
	sub, err := enter(dir, name)
	if err != nil {
		return err
	}
	defer sub.close()
	entries, err := sub.listEntries()
	if err != nil {
		return step("list the folder "+name, err)
	}
	for _, e := range entries {
		part := path.Join(prefix, e.Name())
		info, err := sub.lstat(e.Name())
		switch {
		case err != nil:
			return step("look at "+part, err)
		case info.IsDir() && strings.Count(part, "/") < targets.MaxFolders:
			before := len(r.state.Parts)
			err = r.readFolder(sub, e.Name(), part)
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

const (
	dataLink   = "..data"                 // the symlink to the current version
	timeLayout = "..2006_01_02_15_04_05." // prefix of a version's name; random text follows
)

func newVersion(now time.Time) string { return now.UTC().Format(timeLayout) + rand.Text() }

// isVersion reports whether newVersion could have made the name.
func isVersion(name string) bool {
	if len(name) <= len(timeLayout) {
		return false
	}
	_, err := time.Parse(timeLayout, name[:len(timeLayout)])
	return err == nil && safefile.IsRandomText(name[len(timeLayout):])
}

// shape is the content of a directory target's folder. Names are sorted.
type shape struct {
	data     string                 // destination of ..data; "" if absent or not ours
	current  string                 // the same, if that version exists
	versions []string               // including the current one
	links    []string               // our symlinks, which lead to parts of the same name
	temps    []string               // temporary symlinks
	others   map[string]fs.FileMode // everything else, with its type
}

func scan(dir folder) (shape, error) {
	entries, err := dir.listEntries()
	if err != nil {
		return shape{}, step("list the folder", err)
	}
	there := shape{others: map[string]fs.FileMode{}}
	for _, e := range entries {
		name, to := e.Name(), ""
		if e.Type() == fs.ModeSymlink {
			if to, err = dir.readlink(name); err != nil {
				return shape{}, step("read the symlink "+name, err)
			}
		}
		switch {
		case e.IsDir() && isVersion(name):
			there.versions = append(there.versions, name)
		case name == dataLink && isVersion(to):
			there.data = to
		case to == linkTo(name):
			there.links = append(there.links, name)
		case to != "" && safefile.IsTempName(name):
			there.temps = append(there.temps, name)
		default:
			there.others[name] = e.Type()
		}
	}
	if slices.Contains(there.versions, there.data) {
		there.current = there.data
	}
	return there, nil
}

// linkTo returns the destination of the symlink that shows a part.
func linkTo(name string) string { return dataLink + "/" + name }
