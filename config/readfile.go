package config

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/safefile"
)

// maxFileBytes bounds what is read of a file: far more than the annotations of
// a Pod, which are 256 KiB, or a configuration file, ever have.
const maxFileBytes = 32 << 20

// readFile reads a whole file of a reasonable size. Its errors do not name the
// file.
func readFile(path string) ([]byte, error) {
	data, err := safefile.Read(path, maxFileBytes)
	return data, cause(err)
}

// templateFolder is a folder of template files. Whole files are all that is
// read.
type templateFolder string

// ReadFile returns a file's content.
func (dir templateFolder) ReadFile(name string) ([]byte, error) {
	return safefile.Read(filepath.Join(string(dir), name), render.MaxTemplate)
}

// Open opens no file.
func (templateFolder) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// cause takes the path off an error.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
