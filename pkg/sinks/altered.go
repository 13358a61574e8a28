package sinks

import (
	"errors"
	"io/fs"

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
func (f *Files) Altered(all []targets.Record) []targets.Key {
	root, err := f.root()
	if err == nil {
		defer root.close()
	}
	var altered []targets.Key
	for _, r := range all {
		last, seen := parseSight(r.Status.Version)
		seen = seen && last.Path == r.Spec.File.Path
		failed := r.Status.WriteFailed || r.Status.RemovalFailed
		if failed || seen && (err != nil || len(r.Status.Former) > 0 || !same(root, last.Stamps)) {
			altered = append(altered, r.Spec.Key)
		}
	}
	return altered
}

// same reports whether everything is as it was.
func same(root folder, seen stamps) bool {
	for name, then := range seen {
		var now stamp
		info, err := root.lstat(name)
		switch {
		case err == nil:
			now = stampOf(info)
		case !errors.Is(err, fs.ErrNotExist):
			return false
		}
		if now != then {
			return false
		}
	}
	return true
}
