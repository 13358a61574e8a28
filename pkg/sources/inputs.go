package sources

import (
	"context"
	"crypto/sha256"
	"path/filepath"
	"slices"
	"time"

	"github.com/secretsync/syncer/internal/safefile"
)

// Inputs watches the files of the configuration.
type Inputs struct {
	// Paths are the files. A file may be missing at first and appear later.
	Paths []string
	// Interval is the time between checks without an event.
	Interval time.Duration
	// Changed is called when the content of a file has changed.
	Changed  func()
	Reporter Reporter

	digests map[string][sha256.Size]byte // by path: digest of the content; zero: no file
}

// Note records the present content. Call it before the files are read, so that no change
// goes unnoticed in between.
func (in *Inputs) Note() { in.detectChange() }

// Run watches until ctx ends.
func (in *Inputs) Run(ctx context.Context) {
	var folders []string
	for _, path := range in.Paths {
		folders = append(folders, filepath.Dir(path))
	}
	report := func(err error) { in.Reporter.Report("configuration watch", err) }
	watch(ctx, slices.Compact(slices.Sorted(slices.Values(folders))), in.Interval, 0, report, func(bool) {
		if in.detectChange() {
			in.Changed()
		}
	})
}

// detectChange reads the files and reports whether one has changed since the last call.
func (in *Inputs) detectChange() (changed bool) {
	if in.digests == nil {
		in.digests = map[string][sha256.Size]byte{}
	}
	for _, path := range in.Paths {
		var digest [sha256.Size]byte
		if content, err := safefile.Read(path, safefile.MaxInput); err == nil {
			digest = sha256.Sum256(content)
		}
		changed = changed || digest != in.digests[path]
		in.digests[path] = digest
	}
	return changed
}
