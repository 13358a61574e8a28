package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxFileBytes bounds what is read of a file: far more than the annotations of
// a Pod, which are 256 KiB, or a configuration file, ever have.
const maxFileBytes = 32 << 20

// readFile reads a whole file of a reasonable size. Its errors do not name the
// file.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cause(err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, cause(err)
	case len(data) > maxFileBytes:
		return nil, fmt.Errorf("it has more than %d MiB", maxFileBytes>>20)
	}
	return data, nil
}

// cause takes the path off an error.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
