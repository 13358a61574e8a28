package sinks

import (
	"errors"
	"io/fs"

	"github.com/secretsync/syncer/pkg/records"
	"github.com/secretsync/syncer/pkg/targets"
)

// Altered finds the targets that are not as they were last seen or left, or to
// which a change failed. It opens no file: a stat
// must show the same device, inode, size, times, mode and owner, which any
// later write, rename, chmod or touch changes. (An old kernel may give two
// changes within a few milliseconds the same time; one in place that keeps the
// size and comes that soon after ours is seen only by the next Read.)
//
// One of which something is due to be removed, and could not be, is reported too.
//
// Each is a hint: a target may be reported that Read then finds unchanged. One
// that was never seen is not reported, since there is nothing to compare it
// with; neither is one that was missing, or removed, and still is, so that a
// removed target costs nothing. When a stat fails, its target is reported, and
// Read returns the error.
func (f *Files) Altered(all []records.Record) []targets.Key {
	root, err := f.root()
	if err == nil {
		defer root.close()
	}
	var altered []targets.Key
	for _, r := range all {
		last, seen := parseSight(r.Status.Version)
		seen = seen && last.path == r.Spec.File.Path
		failed := r.Status.WriteFailed || r.Status.RemovalFailed
		if failed || seen && (err != nil || len(r.Status.Former) > 0 || !same(root, last)) {
			altered = append(altered, r.Spec.Key)
		}
	}
	return altered
}

// same reports whether everything is as it was. What cannot be looked at is not.
func same(root folder, last sight) bool {
	return last.shows(func(name string) (now stamp, known bool) {
		info, err := root.lstat(name)
		if err == nil {
			now = stampOf(info)
		}
		return now, err == nil || errors.Is(err, fs.ErrNotExist)
	})
}
