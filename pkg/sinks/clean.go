package sinks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/secretsync/syncer/pkg/targets"
)

// Clean removes temporary files that a killed process left next to the targets. In
// the folder of a [targets.FormatDirectory] target it also removes temporary
// symlinks and versions other than the current one. It keeps all other files. A
// missing folder needs no cleaning. Errors are collected and do not stop the
// cleaning. An invalid target, one with Faults, is skipped.
//
// Call it at startup, before the first Apply. If another process is changing the
// same targets, that one change fails and is then repeated. Therefore there is no
// lock.
func (f *Files) Clean(ctx context.Context, ts []*targets.Target) error {
	root, err := f.root()
	switch {
	case errors.Is(err, errNotMade):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", f.dir, err)
	}
	defer root.close()
	var errs []error
	cleaned := map[string]bool{} // cleaned folders
	for _, t := range ts {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if len(t.Faults) > 0 { // its path and mode may be unknown
			continue
		}
		l, err := f.layout(t)
		if err == nil && !cleaned[l.folder()] {
			cleaned[l.folder()] = true
			err = clean(root, l)
		}
		errs = append(errs, f.failed(t, err))
	}
	return errors.Join(errs...)
}

// clean removes the leftovers in one target's folder.
func clean(root folder, l layout) error {
	dir, err := l.enter(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	defer dir.close()
	names, err := l.leftovers(dir)
	if err != nil || len(names) == 0 {
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, step("remove the leftover "+name, dir.removeAll(name)))
	}
	return errors.Join(append(errs, step("sync the folder", dir.sync()))...)
}
