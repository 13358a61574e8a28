package sources_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// deadline is generous: these tests wait for events, not for time to pass.
const deadline = 30 * time.Second

// templated is two targets with template files and one without.
func templated() []*targets.Target {
	return []*targets.Target{
		{Key: "file/a", Template: targets.Template{File: "a.tpl"}},
		{Key: "file/b", Template: targets.Template{File: "b.tpl"}},
		{Key: "file/c", Template: targets.Template{Inline: "inline"}},
	}
}

// watching runs the templates of dir and returns the keys hinted at, one
// hint an element.
func watching(t *testing.T, dir string, interval time.Duration) (*sources.Templates, <-chan []targets.Key) {
	t.Helper()
	var set records.Lane
	set.Replace(templated())
	got := make(chan []targets.Key, 100)
	s := &sources.Templates{
		Dir: dir, Interval: interval, Users: &set,
		Queue: enqueueFunc(func(h queue.Hint, keys ...targets.Key) {
			if len(keys) > 0 {
				if !h.Wakes {
					t.Error("a changed template must reach a target that rests")
				}
				got <- keys
			}
		}),
		Reporter: reportFunc(func(subject string, err error) {
			if err != nil {
				t.Errorf("%s: %v", subject, err)
			}
		}),
	}
	running(t, s.Run)
	return s, got
}

// write puts a file there whole: a file that is written in place has versions
// in between, each a reason for a hint.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, s *sources.Templates, target *targets.Target, want string) {
	t.Helper()
	got, err := s.Text(target)
	if err != nil || got != want {
		t.Fatalf("template of %s is %q, %v; want %q", target.Key, got, err, want)
	}
}

func waitFor(t *testing.T, got <-chan []targets.Key, want ...targets.Key) {
	t.Helper()
	select {
	case keys := <-got:
		if !slices.Equal(keys, want) {
			t.Fatalf("hint at %v, want %v", keys, want)
		}
	case <-time.After(deadline):
		t.Fatalf("no hint at %v", want)
	}
}

func TestAnEditedTemplateHintsAtItsTargetOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.tpl"), "one")
	write(t, filepath.Join(dir, "b.tpl"), "one")
	s, got := watching(t, dir, time.Hour)
	ts := templated()
	text(t, s, ts[0], "one")
	text(t, s, ts[1], "one")
	text(t, s, ts[2], "inline")

	write(t, filepath.Join(dir, "other"), "not a template of ours")
	write(t, filepath.Join(dir, "b.tpl"), "two!")
	waitFor(t, got, "file/b")
	text(t, s, ts[1], "two!")

	// Written in place, as some editors do.
	if err := os.WriteFile(filepath.Join(dir, "a.tpl"), []byte("two!"), 0o644); err != nil {
		t.Fatal(err)
	}
	waitFor(t, got, "file/a")
}

func TestTheSwapOfAConfigMapMountIsSeen(t *testing.T) {
	dir := t.TempDir()
	version := func(name, content string) {
		for _, file := range []string{"a.tpl", "b.tpl"} {
			write(t, filepath.Join(dir, name, file), content)
		}
		if err := os.Symlink(name, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("..2026_1", "one")
	for _, file := range []string{"a.tpl", "b.tpl"} {
		if err := os.Symlink(filepath.Join("..data", file), filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	s, got := watching(t, dir, time.Hour)
	text(t, s, templated()[0], "one")
	text(t, s, templated()[1], "one")

	version("..2026_2", "two")
	waitFor(t, got, "file/a", "file/b")
	text(t, s, templated()[0], "two")
}

func TestAFolderThatAppearsLaterIsFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "templates")
	s, got := watching(t, dir, 10*time.Millisecond)
	if _, err := s.Text(templated()[0]); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("error is %v, want that the file does not exist", err)
	}
	write(t, filepath.Join(dir, "a.tpl"), "one")
	waitFor(t, got, "file/a")
}

func TestAVersionThatNobodyReadIsHintedAtOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.tpl"), "one")
	s, got := watching(t, dir, time.Millisecond)
	text(t, s, templated()[0], "one")
	write(t, filepath.Join(dir, "a.tpl"), "two!")
	waitFor(t, got, "file/a")
	// The worker does not come to read it. Many looks later:
	write(t, filepath.Join(dir, "a.tpl"), "three")
	waitFor(t, got, "file/a")
	text(t, s, templated()[0], "three")
	if n := len(got); n != 0 {
		t.Errorf("%d more hints at versions that were hinted at already", n)
	}
}

func TestAnythingButATemplateOfAReasonableSizeIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := &sources.Templates{Dir: dir}
	text := func() error {
		_, err := s.Text(&targets.Target{Key: "file/a", Template: targets.Template{File: "a.tpl"}})
		return err
	}
	path := filepath.Join(dir, "a.tpl")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := text(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a FIFO: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600), os.Truncate(path, 600<<20)); err != nil {
		t.Fatal(err)
	}
	if err := text(); err == nil || !strings.Contains(err.Error(), "more than 1 MiB") {
		t.Errorf("a template of 600 MiB: %v", err)
	}
}
