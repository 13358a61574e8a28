package sinks

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// isBound reports whether a file system is mounted at the folder. It detects bind
// mounts within the same file system. Before Linux 5.8 it returns false.
func isBound(dir string) bool {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, 0, 0, &s)
	return err == nil && s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// onDisk reports whether a folder's file system is outside of memory. It returns
// false if that is unknown.
func onDisk(dir string) bool {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return false
	}
	return uint32(s.Type) != unix.TMPFS_MAGIC && uint32(s.Type) != unix.RAMFS_MAGIC
}

// changeTime returns the time when a file's content or attributes last changed.
// Unlike the modification time, no program can set it.
func changeTime(s *syscall.Stat_t) int64 { return s.Ctim.Nano() }
