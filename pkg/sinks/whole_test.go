package sinks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// whileReading calls read in a tight loop during write, and fails when read
// does.
func whileReading(t *testing.T, read func() error, write func()) {
	t.Helper()
	stop, result := make(chan struct{}), make(chan error, 1)
	go func() {
		for reads := 0; ; reads++ {
			select {
			case <-stop:
				if reads == 0 {
					result <- errors.New("nothing was read")
				}
				close(result)
				return
			default:
			}
			if err := read(); err != nil {
				result <- fmt.Errorf("read %d: %w", reads, err)
				close(result)
				return
			}
		}
	}()
	write()
	close(stop)
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// readWhole reads a self-describing file as an application does, and gives
// the name in it.
func readWhole(name string, mode fs.FileMode) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Mode() != mode {
		return "", fmt.Errorf("the mode is %v, want %v", info.Mode(), mode)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return "", err
	}
	return describes(string(b))
}

func TestReaderSeesWholeFiles(t *testing.T) {
	setUmask(t, 0o077)
	eachFileSystem(t, func(t *testing.T, dir string) {
		files, target := newKeeper(dir, nil), fileTarget("a", 0o644)
		write := func(i int) {
			apply(t, files, target, rewrite(WholeFile, selfDescribing(fmt.Sprint(i), 1+i*7919%20_000)))
		}
		write(0)
		read := func() error {
			_, err := readWhole(filepath.Join(dir, "a"), 0o644)
			return err
		}
		whileReading(t, read, func() {
			for i := range 1000 {
				write(i)
			}
		})
		expectTree(t, dir, "-rw-r--r-- a")
	})
}

// readOneVersion reads all parts of one version of a directory, and gives the
// name that all have in them. The version may go while it is read; then
// readOneVersion begins again.
func readOneVersion(dir string, mode fs.FileMode, parts ...string) (string, error) {
	for {
		version, err := os.Readlink(filepath.Join(dir, "..data"))
		if err != nil {
			return "", err
		}
		first, err := readWhole(filepath.Join(dir, version, parts[0]), mode)
		for _, part := range parts[1:] {
			if err != nil {
				break
			}
			var name string
			if name, err = readWhole(filepath.Join(dir, version, part), mode); err == nil && name != first {
				err = fmt.Errorf("parts of %s and of %s are in one version", first, name)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			if now, _ := os.Readlink(filepath.Join(dir, "..data")); now != version {
				continue
			}
		}
		return first, err
	}
}

func TestReaderSeesOneVersion(t *testing.T) {
	setUmask(t, 0o077)
	eachFileSystem(t, func(t *testing.T, dir string) {
		files, target := newKeeper(dir, nil), directoryTarget("a", 0o644)
		write := func(i int) {
			name := fmt.Sprint(i)
			apply(t, files, target, rewrite("user", selfDescribing(name, 1+i%100), "word", selfDescribing(name, 1+i*7919%10_000)))
		}
		write(0)
		read := func() error {
			_, err := readOneVersion(filepath.Join(dir, "a"), 0o644, "user", "word")
			return err
		}
		whileReading(t, read, func() {
			for i := range 200 {
				write(i)
			}
		})
	})
}

// A part that comes is there, and one that goes is gone, in the same instant:
// whatever the step, a reader finds exactly one of them.
func TestPartsComeAndGoWithTheSwap(t *testing.T) {
	dir := t.TempDir()
	f := &faults{}
	files, target := f.files(dir, nil), directoryTarget("a", 0o644)
	apply(t, files, target, rewrite("old", "text"))
	looks := 0
	f.hook = func(call string) {
		_, oldErr := os.Stat(filepath.Join(dir, "a/old"))
		_, newErr := os.Stat(filepath.Join(dir, "a/new"))
		if (oldErr == nil) == (newErr == nil) {
			t.Errorf("before %s: old part %v, new part %v", call, oldErr, newErr)
		}
		looks++
	}
	apply(t, files, target, rewrite("new", "text"))
	if looks == 0 {
		t.Error("nobody looked")
	}
}
