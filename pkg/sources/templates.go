package sources

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/secretsync/syncer/internal/safefile"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/targets"
)

// FileUsers finds targets by the template files that they use. The paths are relative to
// the folder.
type FileUsers interface {
	TemplateFiles() []string
	ByTemplate(files ...string) []targets.Key
}

// Templates supplies the template files of a folder. It reads them for the workers and
// adds hints for the targets whose template changed.
type Templates struct {
	// Dir is the folder. It may be missing at first and appear later.
	Dir string
	// Interval is the time between checks without an event.
	Interval time.Duration
	Users    FileUsers
	Queue    queue.Enqueuer
	Reporter Reporter

	mu     sync.Mutex
	read   map[string]sight // by file: its version when a worker read it
	hinted map[string]sight // by file: its version when its targets were hinted at
}

// sight distinguishes one version of a file from another. The zero sight means that the
// file does not exist.
type sight struct {
	dev, ino uint64
	size     int64
	modified time.Time
}

// Text returns the template of a target: from its definition, or else from the present
// content of its file. It returns "" for a target without a template.
func (s *Templates) Text(t *targets.Target) (string, error) {
	if t.Template.File == "" {
		return t.Template.Inline, nil
	}
	s.recordRead(t.Template.File) // before the read, so that a change in between is noticed
	path := s.path(t.Template.File)
	text, err := safefile.Read(path, targets.MaxTemplateText)
	if err == nil && len(text) == 0 {
		err = fmt.Errorf("%s is empty; write the template there", path)
	}
	return string(text), err
}

func (s *Templates) path(file string) string {
	return filepath.Join(s.Dir, filepath.FromSlash(file))
}

func (s *Templates) recordRead(file string) {
	now := s.statFile(file)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read == nil {
		s.read = map[string]sight{}
	}
	s.read[file] = now
}

func (s *Templates) statFile(file string) sight {
	info, err := os.Stat(s.path(file))
	if err != nil {
		return sight{}
	}
	seen := sight{size: info.Size(), modified: info.ModTime()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		seen.dev, seen.ino = uint64(sys.Dev), sys.Ino
	}
	return seen
}

// changed lists the files that have changed since a worker last read them, each version
// once. It ignores files that no worker has read, because they will be read.
func (s *Templates) changed() []string {
	now := map[string]sight{}
	for _, file := range s.Users.TemplateFiles() {
		now[file] = s.statFile(file)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed []string
	for file, seen := range now {
		read, known := s.read[file]
		if known && seen != read && (s.hinted == nil || seen != s.hinted[file]) {
			changed = append(changed, file)
		}
	}
	s.hinted = now
	return changed
}

// Run watches until ctx ends.
func (s *Templates) Run(ctx context.Context) {
	report := func(err error) { s.Reporter.Report("template watch", err) }
	watch(ctx, []string{s.Dir}, s.Interval, 0, report, func(bool) {
		s.Queue.Enqueue(queue.Hint{Trigger: "template", Wakes: true}, s.Users.ByTemplate(s.changed()...)...)
	})
}
