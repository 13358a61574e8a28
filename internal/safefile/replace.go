package safefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace atomically replaces a file with one of mode 0600. The new content is complete
// and durable. Nobody else may write to the folder.
func Replace(path string, content []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
