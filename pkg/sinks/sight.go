package sinks

import (
	"encoding/binary"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// sight is the state of a target as last read or written. Its text is the version
// in the target's status.
type sight struct {
	path   string         // path at that time
	format targets.Format // format at that time
	seen   string         // text of its stamps
}

// stamps maps each path of a target, below the secrets folder, to its stamp. The
// zero stamp means that the path did not exist.
type stamps map[string]stamp

// end terminates each name in a text. File names cannot contain it.
const end = "\x00"

// encode returns the stamps in the order of their names, so that equal stamps have equal
// texts.
func (s stamps) encode() string {
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(s)) {
		text = s[name].append(append(append(text, name...), end...))
	}
	return string(text)
}

// sightOf returns the new sight of a target. The old sight becomes a former one if the
// target was at another path, or a folder instead of a file. Its content there must be
// unchanged.
func sightOf(r records.Record, now stamps) records.Sight {
	status := r.Status
	after := records.Sight{Version: sight{r.Spec.File.Path, r.Spec.Format, now.encode()}.version(), Former: status.Former}
	if last, ok := parseSight(status.Version); ok && !last.at(r.Spec) &&
		status.Ours && !status.WriteFailed && !status.RemovalFailed && last.there() {
		after.Former = append(after.Former[:len(after.Former):len(after.Former)], status.Version)
	}
	return after
}

func (s sight) version() string { return s.path + end + string(s.format) + end + s.seen }

// parseSight parses a version. It returns false if the version is invalid. Each
// check of each target calls it.
func parseSight(version string) (s sight, ok bool) {
	path, rest, _ := strings.Cut(version, end)
	format, seen, ok := strings.Cut(rest, end)
	return sight{path, targets.Format(format), seen}, ok
}

// at reports whether a target is still a file, or a folder, at the sight's path.
func (s sight) at(t *targets.Target) bool {
	return s.path == t.File.Path && (s.format == targets.FormatDirectory) == (t.Format == targets.FormatDirectory)
}

// there reports whether any file existed: not every name had the zero stamp.
func (s sight) there() bool { return !s.unchanged(func(string) (stamp, bool) { return stamp{}, true }) }

// unchanged reports whether everything is as it was. stampOf returns the current stamp of a
// name, if it is known.
func (s sight) unchanged(stampOf func(name string) (now stamp, known bool)) bool {
	var text [stampSize]byte
	for seen := s.seen; seen != ""; {
		name, then, _ := strings.Cut(seen, end)
		now, known := stampOf(name)
		if !known || len(then) < stampSize || string(now.append(text[:0])) != then[:stampSize] {
			return false
		}
		seen = then[stampSize:]
	}
	return true
}

// target returns a target at the sight's path, with its format.
func (s sight) target() *targets.Target {
	return &targets.Target{Format: s.format, File: targets.File{Path: s.path, Mode: 0o600}}
}

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
