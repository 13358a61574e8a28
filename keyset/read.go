package keyset

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
)

const (
	maxFiles = 1000
	maxBytes = 1 << 20
	// attempts bounds the attempts to read a folder that keeps changing.
	attempts = 100
)

var errChanged = errors.New("the folder changed each time it was read")

// readFolder returns the folder's state. If nothing changed, it returns old itself.
func (s *Set) readFolder(old *state) (*state, error) {
	for range attempts {
		st, err := s.enter(old)
		if !errors.Is(err, errChanged) && !errors.Is(err, fs.ErrNotExist) {
			return st, err
		}
		if _, gone := os.Stat(s.folder); gone != nil {
			return nil, gone
		}
	}
	return nil, errChanged
}

// enter makes one attempt to read the folder. The kubelet and Syncer replace all
// files at once by the symlink ..data, and then remove the old files. Therefore
// enter follows the symlink once. The result is consistent if the symlink then
// still has the same destination.
func (s *Set) enter(old *state) (*state, error) {
	outer, err := os.OpenRoot(s.folder)
	if err != nil {
		return nil, err
	}
	defer outer.Close()
	root, err := outer.OpenRoot("..data")
	linked := err == nil
	if linked {
		defer root.Close()
	} else if _, missing := outer.Lstat("..data"); missing != nil {
		root = outer
	} else {
		return nil, err
	}
	files, err := s.listKeyFiles(root)
	if err != nil {
		return nil, err
	}
	if old != nil && old.err == nil && same(old.files, files) {
		return old, nil
	}
	contents := make(map[string][]byte)
	for _, file := range files {
		if contents[file.Name()], err = readFile(root, file.Name()); err != nil {
			return nil, err
		}
	}
	again, err := s.listKeyFiles(root)
	if err != nil || !same(files, again) {
		return nil, errChanged
	}
	was, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	if now, err := outer.Stat("..data"); linked != (err == nil) || linked && !os.SameFile(was, now) {
		return nil, errChanged
	}
	st, err := parse(contents, s.prefix, old)
	if err != nil {
		return nil, err
	}
	st.files = files
	return st, nil
}

// listKeyFiles returns the key files, sorted by name.
func (s *Set) listKeyFiles(root *os.Root) ([]fs.FileInfo, error) {
	folder, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(maxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("it has more than %d files", maxFiles)
	}
	slices.Sort(names)
	var files []fs.FileInfo
	for _, name := range names {
		if name[0] == '.' || !strings.HasPrefix(name, s.prefix) || !strings.Contains(name, ".") {
			continue
		}
		info, err := root.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	return files, nil
}

func same(a, b []fs.FileInfo) bool {
	return slices.EqualFunc(a, b, func(a, b fs.FileInfo) bool {
		return a.Name() == b.Name() && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
	})
}

// readFile does not block if a pipe has replaced the file.
func readFile(root *os.Root, name string) ([]byte, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errChanged
	}
	content, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if len(content) > maxBytes {
		return nil, fmt.Errorf("file %s has more than %d bytes", name, maxBytes)
	}
	return content, err
}

// parse builds keys from files. A key that existed before keeps its time of last
// use.
func parse(files map[string][]byte, prefix string, old *state) (*state, error) {
	keys := make(map[string]Key)
	primaries := make(map[string]bool)
	for name, content := range files {
		rest, primary := strings.CutSuffix(name[len(prefix):], ".primary")
		id, part, _ := strings.Cut(rest, ".")
		if id == "" || part == "" {
			return nil, fmt.Errorf("file %s is not named <id>.<part> or <id>.<part>.primary", name)
		}
		key, ok := keys[id]
		if !ok {
			key = Key{ID: id, parts: make(map[string][]byte), used: new(atomic.Int64)}
			if before, ok := old.byID(id); ok {
				key.used = before.used
			}
		}
		if _, twice := key.parts[part]; twice {
			return nil, fmt.Errorf("part %s of key %s is there twice, with .primary and without", part, id)
		}
		key.parts[part] = content
		if part == "key" && len(content) == 32 {
			block, _ := aes.NewCipher(content) // fails only for other lengths
			key.aead, _ = cipher.NewGCM(block) // fails only for other block sizes
		}
		keys[id] = key
		if primary {
			primaries[id] = true
		}
	}
	if len(primaries) != 1 {
		return nil, fmt.Errorf("%d keys are marked .primary, not one: %q", len(primaries), slices.Sorted(maps.Keys(primaries)))
	}
	st := &state{}
	for i, id := range slices.Sorted(maps.Keys(keys)) {
		if primaries[id] {
			st.primary = i
		}
		st.keys = append(st.keys, keys[id])
	}
	return st, nil
}
