package sinks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// nested is a folder with a part in it and two in folders below, one of which has
// a mode of its own.
func nested() (*targets.Target, Changes) {
	target := directoryTarget("app", 0o640)
	target.Entries = []targets.Entry{{Alias: "user"}, {Alias: "crt", Path: "tls/crt"}, {Alias: "key", Path: "tls/server/key.pem", Mode: 0o400}}
	return target, rewrite("user", "u", "tls/crt", "c", "tls/server/key.pem", "k")
}

func TestPartsInFoldersBelow(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, dir string) {
		files := newKeeper(dir, nil)
		target, change := nested()
		apply(t, files, target, change)
		expectTree(t, dir, "drwxr-xr-x app", "drwxr-xr-x app/VERSION", "drwxr-xr-x app/VERSION/tls", "-rw-r----- app/VERSION/tls/crt",
			"drwxr-xr-x app/VERSION/tls/server", "-r-------- app/VERSION/tls/server/key.pem", "-rw-r----- app/VERSION/user",
			"link app/..data -> VERSION", "link app/tls -> ..data/tls", "link app/user -> ..data/user")
		state := read(t, files, target)
		if state.Stale || state.Mode != 0o640 || len(state.Parts) != 3 || string(state.Parts["tls/server/key.pem"].Bytes()) != "k" {
			t.Errorf("read %+v", state)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "app/tls/server/key.pem")); err != nil || string(text) != "k" {
			t.Errorf("the key is %q, %v", text, err)
		}
		target.Entries = target.Entries[:2] // another definition, without the key
		less := rewrite("user", "u", "tls/crt", "c")
		less.Remove = []string{"tls/server/key.pem"}
		apply(t, files, target, less)
		if _, err := os.Stat(filepath.Join(dir, "app/tls/server")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the folder of a part that is gone: %v", err)
		}
		less = rewrite("user", "u")
		less.Remove = []string{"tls/crt"}
		apply(t, files, target, less)
		expectTree(t, dir, append([]string{"drwxr-xr-x app"}, "drwxr-xr-x app/VERSION", "-rw-r----- app/VERSION/user", "link app/..data -> VERSION", "link app/user -> ..data/user")...)
		apply(t, files, target, removal("user"))
		expectTree(t, dir, "drwxr-xr-x app")
	})
}

func TestFoldersBelowAreMended(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, version string){
		"a part removed":        func(t *testing.T, v string) { must(t, os.Remove(filepath.Join(v, "tls/crt"))) },
		"the mode of its own":   func(t *testing.T, v string) { must(t, os.Chmod(filepath.Join(v, "tls/server/key.pem"), 0o640)) },
		"the mode of another":   func(t *testing.T, v string) { must(t, os.Chmod(filepath.Join(v, "tls/crt"), 0o400)) },
		"a folder removed":      func(t *testing.T, v string) { must(t, os.RemoveAll(filepath.Join(v, "tls"))) },
		"a part added":          func(t *testing.T, v string) { must(t, os.WriteFile(filepath.Join(v, "tls/x"), nil, 0o640)) },
		"an empty folder added": func(t *testing.T, v string) { must(t, os.Mkdir(filepath.Join(v, "tls/x"), 0o755)) },
		"a folder replaced by a symlink": func(t *testing.T, v string) {
			must(t, os.RemoveAll(filepath.Join(v, "tls/server")))
			must(t, os.Symlink("/etc", filepath.Join(v, "tls/server")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := newKeeper(dir, nil)
			target, change := nested()
			apply(t, files, target, change)
			version, err := filepath.EvalSymlinks(filepath.Join(dir, "app/..data"))
			must(t, err)
			before := tree(t, dir)
			reader := newKeeper(dir, nil)
			read(t, reader, target)
			damage(t, version)
			for who, files := range map[string]*keeper{"has written": files, "has read": reader} {
				if !isAltered(files, target) {
					t.Errorf("the damage is not seen by a look of who %s", who)
				}
			}
			state := read(t, files, target)
			if right := !state.Stale && len(state.Parts) == 3; right {
				t.Errorf("the damage is not seen by a read: %+v", state)
			}
			apply(t, files, target, change)
			if read(t, files, target).Stale {
				t.Error("it is stale after it was mended")
			}
			expectTree(t, dir, before...)
		})
	}
}

// TestAReaderMeetsOneVersionInFoldersBelow: all of what is reached by one entry
// into ..data is of one write.
func TestAReaderMeetsOneVersionInFoldersBelow(t *testing.T) {
	dir := memoryDir(t)
	files := newKeeper(dir, nil)
	target, _ := nested()
	write := func(text string) {
		apply(t, files, target, rewrite("user", text, "tls/crt", text, "tls/server/key.pem", text))
	}
	write("first")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			write(strings.Repeat("x", i+1))
		}
	}()
	defer func() { <-done }()
	for reads := 0; ; {
		select {
		case <-done:
			if reads == 0 {
				t.Error("nothing was read")
			}
			return
		default:
		}
		root, err := os.OpenRoot(filepath.Join(dir, "app/..data"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // what the link named was removed before it was entered
		}
		must(t, err)
		var texts []string
		for _, name := range []string{"user", "tls/crt", "tls/server/key.pem"} {
			text, err := root.ReadFile(name)
			if err == nil { // else this version was removed meanwhile
				texts = append(texts, string(text))
			}
		}
		must(t, root.Close())
		for _, text := range texts {
			if text != texts[0] {
				t.Fatalf("two versions meet: %q", texts)
			}
		}
		reads += len(texts)
	}
}
