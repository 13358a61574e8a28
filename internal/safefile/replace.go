package safefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace atomically replaces a file with one of mode 0600. The new content is complete
// and durable. Nobody else may write to the folder. A killed process leaves the file of
// CreateTemp.
func Replace(path string, content []byte) (err error) {
	file, err := CreateTemp(filepath.Dir(path))
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

// CreateTemp creates a file of mode 0600 in a folder, to write to. IsTempName recognizes its
// name: the folders of secrets and of the status are cleared of such files at the start. In
// other folders they stay.
func CreateTemp(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, TempName()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}
