package operate

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Install copies this binary to dir/syncer, which it replaces as a whole: it may
// be running there.
func Install(dir string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	next, err := os.CreateTemp(dir, ".syncer-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(next.Name()))
		}
	}()
	_, err = io.Copy(next, from)
	if err = errors.Join(err, next.Chmod(0o755), next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), filepath.Join(dir, "syncer"))
}
