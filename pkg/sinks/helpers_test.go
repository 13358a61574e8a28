package sinks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

func fileTarget(path string, mode fs.FileMode) *targets.Target {
	return &targets.Target{Key: "file/test", Format: targets.FormatYAML, File: targets.File{Path: path, Mode: mode}}
}

func directoryTarget(path string, mode fs.FileMode) *targets.Target {
	return &targets.Target{Key: "file/test", Format: targets.FormatDirectory, File: targets.File{Path: path, Mode: mode}}
}

// rewrite is the changes that write all parts, given as name and value in
// turn.
func rewrite(pairs ...string) Changes {
	c := Changes{Parts: map[string]secret.Value{}}
	for i := 0; i < len(pairs); i += 2 {
		c.Parts[pairs[i]] = secret.New([]byte(pairs[i+1]))
		c.Set = append(c.Set, pairs[i])
	}
	return c
}

func removal(names ...string) Changes { return Changes{Remove: names} }

func apply(t *testing.T, f *keeper, target *targets.Target, c Changes) {
	t.Helper()
	if err := f.Apply(t.Context(), target, c); err != nil {
		t.Fatalf("Apply: %v", err)
	}
}

func read(t *testing.T, f *keeper, target *targets.Target) State {
	t.Helper()
	state, err := f.Read(t.Context(), target)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return state
}

// plaintext is a state's parts, nil for none.
func plaintext(s State) map[string]string {
	if s.Parts == nil {
		return nil
	}
	texts := map[string]string{}
	for name, v := range s.Parts {
		texts[name] = string(v.Bytes())
	}
	return texts
}

// tree lists all that is below dir, with modes and where symlinks lead; the
// random names of versions are shown as VERSION.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		line := fmt.Sprintf("%v %s", info.Mode(), rel)
		if info.Mode().Type() == fs.ModeSymlink {
			to, _ := os.Readlink(name)
			line = fmt.Sprintf("link %s -> %s", rel, to)
		}
		for _, segment := range strings.FieldsFunc(line, func(r rune) bool { return r == '/' || r == ' ' }) {
			if isVersion(segment) {
				line = strings.ReplaceAll(line, segment, "VERSION")
			}
		}
		list = append(list, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func expectTree(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := tree(t, dir); !slices.Equal(got, want) {
		t.Errorf("the folder holds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// selfDescribing is text that shows whether it is whole: a name, the number
// of bytes, their hash, and the bytes.
func selfDescribing(name string, n int) string {
	body := strings.Repeat(name+".", n)
	sum := sha256.Sum256([]byte(body))
	return fmt.Sprintf("%s %d %s %s", name, len(body), hex.EncodeToString(sum[:]), body)
}

// describes returns the name in a self-describing text, and an error when the
// text is not whole.
func describes(text string) (string, error) {
	fields := strings.SplitN(text, " ", 4)
	if len(fields) != 4 {
		return "", fmt.Errorf("%d bytes are not a whole text", len(text))
	}
	sum := sha256.Sum256([]byte(fields[3]))
	if fields[1] != fmt.Sprint(len(fields[3])) || fields[2] != hex.EncodeToString(sum[:]) {
		return "", fmt.Errorf("%d bytes of the text of %s bytes called %s", len(fields[3]), fields[1], fields[0])
	}
	return fields[0], nil
}

// memoryDir is a folder in a memory file system, where a sync costs nothing;
// on the disk where there is none.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "sinks")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// eachFileSystem runs the test on the disk, and on a memory file system where
// there is one.
func eachFileSystem(t *testing.T, run func(t *testing.T, dir string)) {
	t.Run("disk", func(t *testing.T) { run(t, t.TempDir()) })
	t.Run("memory", func(t *testing.T) { run(t, memoryDir(t)) })
}
