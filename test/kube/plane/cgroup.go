package plane

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupRoots are the hierarchies that are mounted: one for each controller
// with version 1, a single one with version 2.
func cgroupRoots() []string {
	const mounted = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(mounted, "cgroup.controllers")); err == nil {
		return []string{mounted}
	}
	found, _ := filepath.Glob(filepath.Join(mounted, "*", "cgroup.procs"))
	var roots []string
	for _, file := range found {
		roots = append(roots, filepath.Dir(file))
	}
	return roots
}

// makeCgroup makes a cgroup in every hierarchy. Two kubelets with the same one
// would end each other's Pods as orphans.
func makeCgroup(name string) (err error) {
	for _, root := range cgroupRoots() {
		err = errors.Join(err, os.Mkdir(filepath.Join(root, name), 0o755))
	}
	return err
}

// removeCgroup removes it, with all below, once its processes have ended.
func removeCgroup(name string) error {
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		err = nil
		for _, root := range cgroupRoots() {
			err = errors.Join(err, removeTree(filepath.Join(root, name)))
		}
		if err == nil {
			return nil
		}
	}
	return err
}

// removeTree removes folders, whose files are the kernel's.
func removeTree(top string) (err error) {
	var dirs []string
	_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		if removed := unix.Rmdir(dir); !errors.Is(removed, unix.ENOENT) {
			err = errors.Join(err, removed)
		}
	}
	return err
}
