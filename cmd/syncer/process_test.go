package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/test/proctest"
)

// start writes the annotations and starts syncer on this world. At the end of
// the test it is stopped, and its output searched for every value.
func (w *world) start(flags ...string) *proctest.Process {
	w.Helper()
	return w.startBy((*exec.Cmd).Start, flags...)
}

// startBy is start with another way to start a process.
func (w *world) startBy(begin func(*exec.Cmd) error, flags ...string) *proctest.Process {
	w.Helper()
	w.Annotate()
	p := spawnBy(w, begin, w.Environ(), w.Flags(flags...)...)
	w.Cleanup(func() { w.Silent(p) })
	return p
}

// spawn starts syncer with arguments, and kills it when the test ends
// before it does.
func spawn(t testing.TB, env []string, args ...string) *proctest.Process {
	t.Helper()
	return spawnBy(t, (*exec.Cmd).Start, env, args...)
}

// spawnBy is spawn with another way to start a process.
func spawnBy(t testing.TB, begin func(*exec.Cmd) error, env []string, args ...string) *proctest.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(env, asCommand+"=1")
	return proctest.Start(t, cmd, begin)
}

// sight is what can be seen of a file without changing it.
type sight struct {
	inode    uint64
	modified time.Time
	mode     fs.FileMode
	content  string
}

// look sees everything in the secrets folder, the folder itself included, and
// the sentinel files, but not the heartbeat.
//
// A file can be seen before it has been announced; the journal's mark tells.
// Looking waits for the announcement, unless nobody lives to make it.
func (w *world) look() map[string]sight {
	w.Helper()
	told := time.After(5 * time.Second)
	for marked := true; marked; {
		marks, _ := filepath.Glob(w.Path("status", ".untold-*"))
		select {
		case <-told:
			marked = false
		case <-time.After(10 * time.Millisecond):
			marked = len(marks) > 0
		}
	}
	seen := map[string]sight{}
	for _, folder := range []string{"secrets", "status"} {
		err := filepath.WalkDir(w.Path(folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == w.Path("status") || d.Name() == notify.AliveFile {
				return err
			}
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a mark of the journal, gone by now
			}
			if err != nil {
				return err
			}
			s := sight{inode: info.Sys().(*syscall.Stat_t).Ino, modified: info.ModTime(), mode: info.Mode()}
			if info.Mode().IsRegular() {
				content, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				s.content = string(content)
			}
			seen[path] = s
			return nil
		})
		if err != nil {
			w.Fatal(err)
		}
	}
	return seen
}

// untouched fails the test if anything was written since that look.
func (w *world) untouched(before map[string]sight) {
	w.Helper()
	now := w.look()
	for path, s := range before {
		if now[path] != s {
			w.Errorf("%s was touched or removed", path)
		}
	}
	for path := range now {
		if _, ok := before[path]; !ok {
			w.Errorf("%s is new", path)
		}
	}
}

// awaitSignal waits until no signal is pending: the process has taken it.
func awaitSignal(t *testing.T, p *proctest.Process) {
	t.Helper()
	eventually(t, "the signal taken", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
		return err != nil || bytes.Contains(status, []byte("ShdPnd:\t0000000000000000"))
	})
}
