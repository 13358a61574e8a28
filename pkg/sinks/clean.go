package sinks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/secretsync/syncer/pkg/targets"
)

// Clean removes what an earlier process, killed in the middle of a change,
// left beside the targets: files whose names are those of our temporary ones,
// and in the folder of a [targets.FormatDirectory] target the temporary
// symlinks and the versions that are not the current one. Anything else stays.
// A folder that is missing has nothing to clean; all that fails is reported,
// and stops nothing.
//
// It is for the start, before the first Apply. Another process that is in the
// middle of a change of the same targets would see that one change fail, with
// nothing worse than a repetition, so there is no lock.
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
	cleaned := map[string]bool{} // folders
	for _, t := range ts {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
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

// clean removes what is left over in one target's folder.
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
