package sinks

import (
	"io/fs"
	"syscall"
)

// stamp is what a stat returns of one file, folder or symlink. The zero
// stamp is that of a name where nothing is.
type stamp struct {
	Dev, Ino     uint64
	Size         int64
	Mtime, Ctime int64 // nanoseconds since 1970
	Mode         fs.FileMode
	UID, GID     int
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{Size: info.Size(), Mtime: info.ModTime().UnixNano(), Mode: info.Mode()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Dev, s.Ino = uint64(sys.Dev), sys.Ino
		s.UID, s.GID = int(sys.Uid), int(sys.Gid)
		s.Ctime = changeTime(sys)
	}
	return s
}
