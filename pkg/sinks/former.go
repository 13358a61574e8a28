package sinks

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// Cleared is the result of removing a target's content at former paths.
type Cleared struct {
	Left             []string // versions (see records.Sight.Former) whose content was not removed
	Removed, Altered []string // paths that were removed; paths that stay because they were altered
}

// RemoveFormer removes a target's content at former paths, if it is unchanged since
// the last write. Content at a path that is taken now stays.
func (f *Files) RemoveFormer(former []string, taken func(path string) bool) (done Cleared, err error) {
	if len(former) == 0 {
		return done, nil
	}
	root, err := f.root()
	if err != nil {
		return Cleared{Left: former}, fmt.Errorf("%s: %w", f.dir, err)
	}
	defer root.close()
	var errs []error
	for _, formerVersion := range former {
		s, ok := parseSight(formerVersion)
		path := filepath.Join(f.dir, s.path)
		switch {
		case !ok || taken(s.path):
		case !same(root, s):
			done.Altered = append(done.Altered, path)
		default:
			if err := f.removeAt(root, s.target()); err != nil {
				done.Left = append(done.Left, formerVersion)
				errs = append(errs, f.failed(s.target(), err))
				continue
			}
			done.Removed = append(done.Removed, path)
			for _, dir := range foldersAbove(s) {
				if taken(dir) { // a target's file belongs there now, and an empty folder is in its way
					_ = root.remove(dir)
				}
			}
		}
	}
	return done, errors.Join(errs...)
}

func (f *Files) removeAt(root folder, t *targets.Target) error {
	l, err := f.layout(t)
	if err != nil {
		return err
	}
	dir, err := l.enter(root)
	if err != nil {
		return err
	}
	defer dir.close()
	return l.remove(dir)
}

// blocked reports whether the target's own content at a former path is in the way of its
// path. It returns the sight of a target that is absent.
func (f *Files) blocked(r records.Record) (former records.Sight, blocked bool) {
	l, err := f.layout(r.Spec)
	if err != nil {
		return former, false
	}
	root, err := f.root()
	if err != nil {
		return former, false
	}
	defer root.close()
	r.Status.Sight = sightOf(r, l.absent())
	return r.Status.Sight, len(inTheWay(root, r)) > 0
}

// clearWay removes the target's own content at former paths that are above or below its
// path, right before the first write there.
func (f *Files) clearWay(root folder, r records.Record) error {
	for _, s := range inTheWay(root, r) {
		if err := f.removeAt(root, s.target()); err != nil {
			return err
		}
		if r.Spec.Format == targets.FormatDirectory {
			continue
		}
		for _, dir := range foldersAbove(s) {
			if within(dir, r.Spec.File.Path) {
				if err := root.remove(dir); err != nil {
					return step("remove the folder "+dir, err)
				}
			}
		}
	}
	return nil
}

// inTheWay returns the former sights of a target that cross its path. It omits content
// that somebody changed, and folders that have entries of others and must become a file.
func inTheWay(root folder, r records.Record) (all []sight) {
	to := r.Spec.File.Path
	for _, formerVersion := range r.Status.Former {
		s, ok := parseSight(formerVersion)
		if ok && !s.at(r.Spec) && (within(s.path, to) || within(to, s.path)) && same(root, s) && s.there() &&
			(r.Spec.Format == targets.FormatDirectory || alone(root, s, to)) {
			all = append(all, s)
		}
	}
	return all
}

// alone reports whether the folders of a sight, up to a path, have only its own entries.
func alone(root folder, s sight, to string) bool {
	below := filepath.Base(s.path)
	for _, name := range foldersAbove(s) {
		if !within(name, to) {
			break
		}
		dir, err := root.sub(name)
		if err != nil {
			return false
		}
		there, err := scan(dir)
		dir.close()
		if err != nil {
			return false
		}
		if s.format != targets.FormatDirectory || name != s.path {
			delete(there.others, below)
		}
		for other := range there.others {
			if !strings.HasPrefix(other, safefile.TempPrefix) {
				return false
			}
		}
		below = filepath.Base(name)
	}
	return true
}

// foldersAbove lists the folders with a sight's files, from the inside out, without the
// secrets folder.
func foldersAbove(s sight) (names []string) {
	at := s.path
	if s.format != targets.FormatDirectory {
		at = filepath.Dir(at)
	}
	for ; at != "."; at = filepath.Dir(at) {
		names = append(names, at)
	}
	return names
}

// within reports whether a path is another one, or below it.
func within(path, other string) bool { return strings.HasPrefix(path+"/", other+"/") }
