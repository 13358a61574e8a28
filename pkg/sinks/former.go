package sinks

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/secretsync/syncer/pkg/targets"
)

// Cleared is the result of removing a target's content at former paths.
type Cleared struct {
	Left             []string // not removed, as in a Sight
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
	for _, version := range former {
		s, ok := parseSight(version)
		path := filepath.Join(f.dir, s.path)
		switch {
		case !ok || taken(s.path):
		case !same(root, s):
			done.Altered = append(done.Altered, path)
		default:
			if err := f.removeAt(root, s.target()); err != nil {
				done.Left = append(done.Left, version)
				errs = append(errs, f.failed(s.target(), err))
				continue
			}
			done.Removed = append(done.Removed, path)
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
