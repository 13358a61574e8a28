package sinks

import (
	"io/fs"
	"syscall"
)

// stamp is what a stat tells about one file, folder or symlink. The zero
// stamp is that of a name where nothing is.
type stamp struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // nanoseconds since 1970
	mode         fs.FileMode
	uid, gid     int
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), mtime: info.ModTime().UnixNano(), mode: info.Mode()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.dev, s.ino = uint64(sys.Dev), sys.Ino
		s.uid, s.gid = int(sys.Uid), int(sys.Gid)
		s.ctime = changeTime(sys)
	}
	return s
}
