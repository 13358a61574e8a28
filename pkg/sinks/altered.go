package sinks

import (
	"errors"
	"io/fs"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// Altered returns the targets that changed since the last read or write, or whose
// last change failed. It opens no file. A stat must show the same device, inode,
// size, times, mode and owner. Every later write, rename, chmod or touch changes at
// least one of these. An old kernel may give the same time to two changes within a
// few milliseconds. There, only the next Read detects an in-place change of the
// same size so soon after ours.
//
// Altered also reports targets whose pending removal failed.
//
// Each result is a hint: Read may find the target unchanged. Altered does not
// report a target that was never read, because it has nothing to compare. It does
// not report a target that was missing or removed and is still absent, so a removed
// target costs nothing. If a stat fails, Altered reports the target, and Read
// returns the error.
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

// same reports whether everything is unchanged. It returns false for anything that
// it cannot examine.
func same(root folder, last sight) bool {
	return last.shows(func(name string) (now stamp, known bool) {
		info, err := root.lstat(name)
		if err == nil {
			now = stampOf(info)
		}
		return now, err == nil || errors.Is(err, fs.ErrNotExist)
	})
}
