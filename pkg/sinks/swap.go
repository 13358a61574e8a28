package sinks

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/secret"
)

// write atomically switches to a new version:
//
//  1. read the current state, and refuse objects that cannot be replaced
//  2. fill the folder of a new version, which no name refers to yet
//  3. create the symlinks of new parts; they dangle until the swap
//  4. sync the folder, so that everything that the swap will show is durable
//  5. swap ..data by a rename; all parts change, appear and disappear with it
//  6. sync the folder; from here on the older version is not needed
//  7. tidy: symlinks that somebody replaced, symlinks of removed parts,
//     older versions
//  8. sync the folder again
//
// A failure before the swap undoes 2 and 3. A failure after it leaves the new
// version current, and the leftovers make the next State stale.
func (d directory) write(dir folder, c Changes) (made stamps, err error) {
	if c.Empty() {
		return nil, d.memo().writeRecords(dir, c)
	}
	err = d.memo().around(dir, c, func() error {
		made, err = d.swap(dir, c)
		return err
	})
	if made != nil {
		made[d.path] = stampAt(dir, ".")
	}
	return made, err
}

// swap is write without the records of members and sets.
func (d directory) swap(dir folder, c Changes) (stamps, error) {
	names := linked(c.Parts)
	there, err := scan(dir) // (1)
	if err == nil {
		err = there.admit(names)
	}
	if err != nil {
		return nil, err
	}
	version := newVersion(time.Now())
	made, added, err := d.prepare(dir, there, version, c.Parts)
	if err == nil {
		err = replaceLink(dir, version, dataLink) // (5)
	}
	if err != nil {
		return nil, errors.Join(err, removeAdded(dir, version, added))
	}
	if err := step("sync the folder", dir.sync()); err != nil { // (6)
		return nil, err
	}
	err = there.tidy(dir, names)                                // (7)
	err = errors.Join(err, step("sync the folder", dir.sync())) // (8)
	return made, err
}

// remove makes all parts disappear atomically, with ..data, and then deletes the
// leftovers. The folder itself stays.
func (d directory) remove(dir folder) error {
	there, err := scan(dir)
	if err != nil {
		return err
	}
	if there.data != "" {
		if err := dir.remove(dataLink); err != nil {
			return step("remove "+dataLink, err)
		}
	}
	err = errors.Join(there.tidy(dir, nil), d.memo().forget(dir))
	return errors.Join(err, step("sync the folder", dir.sync()))
}

// prepare does everything that precedes the swap. It returns the added names even
// on an error.
func (d directory) prepare(dir folder, there shape, version string, parts map[string]secret.Value) (made stamps, added []string, err error) {
	if made, err = d.fill(dir, version, parts); err != nil { // (2)
		return nil, nil, err
	}
	for _, name := range linked(parts) { // (3)
		if _, taken := there.others[name]; taken || slices.Contains(there.links, name) {
			continue
		}
		added = append(added, name)
		if err := dir.symlink(linkTo(name), name); err != nil {
			return nil, added, step("make the symlink "+name, err)
		}
	}
	return made, added, step("sync the folder", dir.sync()) // (4)
}

// fill creates the folder of one version, complete and durable.
func (d directory) fill(dir folder, version string, parts map[string]secret.Value) (stamps, error) {
	if err := dir.mkdir(version); err != nil {
		return nil, step("make the folder "+version, err)
	}
	sub, err := enter(dir, version)
	if err != nil {
		return nil, err
	}
	defer sub.close()
	at := path.Join(d.path, version)
	made, folders := stamps{}, map[string]bool{}
	for part, value := range parts {
		if err := below(sub, path.Dir(part), folders); err != nil {
			return nil, err
		}
		f, s, err := d.of(part).create(sub, part, value.Bytes())
		if f != nil {
			err = errors.Join(err, step("close the file", f.Close()))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
		made[path.Join(at, part)] = s
	}
	for name := range folders {
		if err := syncFolder(sub, name); err != nil {
			return nil, step("sync the folder "+name, err)
		}
		made[path.Join(at, name)] = stampAt(sub, name)
	}
	if err := sub.sync(); err != nil {
		return nil, step("sync the folder "+version, err)
	}
	made[at] = stampAt(dir, version)
	return made, nil
}

// below creates a folder of a version with its parents, and records them.
func below(version folder, name string, folders map[string]bool) error {
	if name == "." || folders[name] {
		return nil
	}
	if err := below(version, path.Dir(name), folders); err != nil {
		return err
	}
	folders[name] = true
	return step("make the folder "+name, version.mkdir(name))
}

// admit refuses names that are folders, because a rename cannot replace a folder.
func (there shape) admit(names []string) error {
	var errs []error
	for _, name := range append(names, dataLink) {
		if there.others[name].IsDir() {
			errs = append(errs, fmt.Errorf("%s is a folder; remove it", name))
		}
	}
	return errors.Join(errs...)
}

// removeAdded removes what a failed write created before the swap, unless the swap
// took place despite its error.
func removeAdded(dir folder, version string, added []string) error {
	data, err := dir.readlink(dataLink)
	if data == version {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EINVAL) { // not a symlink
		return step("read the symlink "+dataLink, err)
	}
	var errs []error
	for _, name := range added {
		errs = append(errs, discard(dir, name, nil))
	}
	return errors.Join(append(errs, step("remove the folder "+version, dir.removeAll(version)))...)
}

// tidy removes everything that does not belong to the current version with the
// given parts. It continues after errors.
func (there shape) tidy(dir folder, names []string) error {
	var errs []error
	for _, name := range names {
		if _, taken := there.others[name]; taken {
			errs = append(errs, replaceLink(dir, linkTo(name), name))
		}
	}
	for _, name := range there.links {
		if !slices.Contains(names, name) {
			errs = append(errs, step("remove the symlink "+name, dir.remove(name)))
		}
	}
	for _, name := range there.versions {
		errs = append(errs, step("remove the folder "+name, dir.removeAll(name)))
	}
	return errors.Join(errs...)
}

// replaceLink atomically puts a symlink at name.
func replaceLink(dir folder, to, name string) error {
	temp := safefile.TempName()
	err := step("make the temporary symlink", dir.symlink(to, temp))
	if err == nil {
		err = step("rename the temporary symlink to "+name, dir.rename(temp, name))
	}
	if err != nil {
		return errors.Join(err, discard(dir, temp, nil))
	}
	return nil
}
