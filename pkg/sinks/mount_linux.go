package sinks

import "golang.org/x/sys/unix"

// isBound reports whether something is mounted at the folder, also when it comes
// from the same file system as what is around it, as a bind mount may. Before
// Linux 5.8 it is false.
func isBound(dir string) bool {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, 0, 0, &s)
	return err == nil && s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// onDisk reports whether a folder is on a file system that is not in memory;
// false where that cannot be known.
func onDisk(dir string) bool {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return false
	}
	return uint32(s.Type) != unix.TMPFS_MAGIC && uint32(s.Type) != unix.RAMFS_MAGIC
}
