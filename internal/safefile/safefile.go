// Package safefile opens files in folders that other programs also write to, such
// as an application or the provider of a volume. It also replaces files atomically. Such
// a folder may contain anything. Nothing in it can make the caller block, read without
// end, or write to an unintended file.
package safefile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// MaxInput bounds a file that people or the kubelet write, such as a configuration, a token or
// certificates. It is much more than such a file needs.
const MaxInput = 32 << 20

// ErrNotRegular is the error of Read for a folder, a FIFO, a device or a socket.
var ErrNotRegular = errors.New("it is not a regular file")

// Read returns the content of the regular file at path. The path may be a symlink,
// as in a mounted ConfigMap. Read refuses a file of more than most bytes. It does
// not wait for the other end of a FIFO. Its errors are [fs.PathError]s.
func Read(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return readOpened(f, path, most)
}

// ReadIn is Read for a name in a folder. It refuses a symlink.
func ReadIn(root *os.Root, name string, most int64) ([]byte, error) {
	info, err := root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return readOpened(f, name, most)
}

// readOpened reads a file that was opened without blocking, and closes it.
func readOpened(f *os.File, path string, most int64) (data []byte, err error) {
	defer func() { _ = f.Close() }() // opened for reading only
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: path, Err: ErrNotRegular}
	}
	if info.Size() > most {
		return nil, tooLong(path, most)
	}
	return ReadAll(f, path, most) // the file may grow meanwhile
}

// ReadInput is Read for a file from the command line, which may be a pipe. It does
// not wait for a pipe without a writer.
func ReadInput(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	return ReadAll(f, path, most)
}

// ReadAll reads to the end, and refuses more than most bytes. The path appears in
// its error.
func ReadAll(in io.Reader, path string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, tooLong(path, most)
	}
	return data, err
}

func tooLong(path string, most int64) error {
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has more than %d MiB", most>>20)}
}

// OpenRoot is [os.OpenRoot], except that it does not block if a FIFO has replaced
// the folder.
func OpenRoot(dir string) (*os.Root, error) { return os.OpenRoot(asFolder(dir)) }

// OpenRootIn is OpenRoot for a folder below root.
func OpenRootIn(root *os.Root, name string) (*os.Root, error) { return root.OpenRoot(asFolder(name)) }

// asFolder changes a path so that the system opens it only if it is a folder.
func asFolder(path string) string { return path + "/." }

// TempPrefix is the prefix of the names that TempName returns.
const TempPrefix = ".syncer-"

// TempName returns an unpredictable name for a temporary file.
func TempName() string { return TempPrefix + rand.Text() }

// IsTempName reports whether TempName could have returned the name. It prevents
// mistaking another program's file for ours.
func IsTempName(name string) bool {
	random, ok := strings.CutPrefix(name, TempPrefix)
	return ok && IsRandomText(random)
}

// IsRandomText reports whether text looks like one of [rand.Text]: 26 letters
// of the base32 alphabet.
func IsRandomText(text string) bool {
	return len(text) == 26 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}
