package sinks

import (
	"encoding/binary"
	"io/fs"
	"syscall"
)

// stamp is the stat result of one file, folder or symlink. The zero stamp means
// that the name does not exist.
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

// stampSize is the number of bytes that append adds.
const stampSize = 8 * 8

// append appends an encoding. Only equal stamps have equal encodings.
func (s stamp) append(text []byte) []byte {
	for _, n := range [...]uint64{s.Dev, s.Ino, uint64(s.Size), uint64(s.Mtime), uint64(s.Ctime), uint64(s.Mode), uint64(s.UID), uint64(s.GID)} {
		text = binary.LittleEndian.AppendUint64(text, n)
	}
	return text
}
