package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// claimFolder makes a folder beside the wanted one, so that the release appears
// complete or not at all. It removes the wanted folder if that is empty.
func claimFolder(wanted string) (dir string, err error) {
	parent := filepath.Dir(wanted)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	switch info, err := os.Lstat(wanted); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%s is not an empty folder: name another one with DIST", wanted)
	default:
		list, err := os.ReadDir(wanted)
		if err != nil {
			return "", err
		}
		if len(list) > 0 {
			return "", fmt.Errorf("%s is not an empty folder: remove it, or name another one with DIST", wanted)
		}
		if err := os.Remove(wanted); err != nil {
			return "", err
		}
	}
	// .gitignore names it, for a process that is killed.
	if dir, err = os.MkdirTemp(parent, ".release-"); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}
