package keyset

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sets are two revisions of one folder. Their files have the same names, so that
// a reader that mixes them misses none.
var sets = []map[string]string{
	{"r1.key": "one", "r2.key.primary": "two", "r2.more.part.primary": "more", "r3.key": "three"},
	{"r1.key": "ONE", "r2.key.primary": "TWO", "r2.more.part.primary": "MORE", "r3.key": "THREE"},
}

// lines are what the readers of docs/keysets.md print of a set, sorted.
func lines(files map[string]string) string {
	var all []string
	for name, content := range files {
		stem, primary := strings.CutSuffix(name, ".primary")
		id, part, _ := strings.Cut(stem, ".")
		mark := "-"
		if primary {
			mark = "primary"
		}
		all = append(all, fmt.Sprintf("%s %s %s %x", id, part, mark, content))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// reader returns a program with the page's reader in the language.
func reader(t *testing.T, language string) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/keysets.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatalf("docs/keysets.md has no reader in %s", language)
	}
	code := string(block[1])
	if n := strings.Count(code, "\n"); n > 25 {
		t.Errorf("it has %d lines", n)
	}
	program := "sh"
	if language == "python" {
		program = "python3"
		code += `
import sys
primary, keys = read_keys(sys.argv[1])
for id, parts in keys.items():
    for part, content in parts.items():
        print(id, part, "primary" if id == primary else "-", content.hex())
`
	}
	path := filepath.Join(t.TempDir(), "reader")
	if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("the page's reader cannot be run: install %s, or put it into the PATH (%v)", program, err)
	}
	return []string{found, path}
}

// swap makes a folder show other files at once, as the kubelet does.
func swap(t *testing.T, folder, name string, files map[string]string) {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	fail(os.Mkdir(filepath.Join(folder, name), 0o700))
	for file, content := range files {
		fail(os.WriteFile(filepath.Join(folder, name, file), []byte(content), 0o600))
	}
	before, _ := os.Readlink(filepath.Join(folder, "..data"))
	fail(os.Symlink(name, filepath.Join(folder, "..data_tmp")))
	fail(os.Rename(filepath.Join(folder, "..data_tmp"), filepath.Join(folder, "..data")))
	for file := range files {
		if err := os.Symlink(filepath.Join("..data", file), filepath.Join(folder, file)); !os.IsExist(err) {
			fail(err)
		}
	}
	if before != "" {
		fail(os.RemoveAll(filepath.Join(folder, before)))
	}
}

func TestReadersOfThePage(t *testing.T) {
	for _, language := range []string{"sh", "python"} {
		t.Run(language, func(t *testing.T) {
			command := reader(t, language)
			read := func(folder string) (string, error) {
				out, err := exec.Command(command[0], command[1], folder).Output()
				got := strings.Split(strings.TrimSpace(string(out)), "\n")
				slices.Sort(got)
				return strings.Join(got, "\n"), err
			}
			plain := t.TempDir()
			for name, content := range sets[0] {
				if err := os.WriteFile(filepath.Join(plain, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := read(plain); err != nil || got != lines(sets[0]) {
				t.Errorf("of a plain folder (%v):\n%s", err, got)
			}
			if err := os.WriteFile(filepath.Join(plain, "r1.key.primary"), []byte("one"), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := read(plain); err == nil {
				t.Errorf("of two primaries:\n%s", got)
			}
			readWhileSwapped(t, read)
		})
	}
}

// readWhileSwapped reads a folder that is exchanged as fast as that goes.
func readWhileSwapped(t *testing.T, read func(string) (string, error)) {
	folder := t.TempDir()
	swap(t, folder, "..0", sets[0])
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
				swap(t, folder, fmt.Sprintf("..%d", n), sets[n%2])
			}
		}
	}()
	defer func() { close(stop); <-done }()
	whole := 0
	for range 15 {
		got, err := read(folder)
		switch {
		case err != nil: // it gave up, which is no mixture
		case got == lines(sets[0]) || got == lines(sets[1]):
			whole++
		default:
			t.Errorf("it printed what was never there:\n%s", got)
		}
	}
	t.Logf("%d of 15 readings were whole, the others were given up", whole)
}

func TestReadersAgreeWithKeyset(t *testing.T) {
	folder := t.TempDir()
	swap(t, folder, "..0", sets[1])
	keys, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, key := range keys.All() {
		for _, part := range slices.Sorted(maps.Keys(key.parts)) {
			name := key.ID + "." + part
			if key.ID == keys.Primary().ID {
				name += ".primary"
			}
			files[name] = string(key.Part(part))
		}
	}
	if lines(files) != lines(sets[1]) {
		t.Errorf("keyset reads\n%s", lines(files))
	}
}
