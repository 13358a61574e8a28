package sources

import (
	"context"
	"crypto/sha256"
	"path/filepath"
	"slices"
	"time"

	"github.com/secretsync/syncer/internal/safefile"
)

// mostInput bounds what is read of a file: as much as of a configuration.
const mostInput = 32 << 20

// Inputs watches the files that the configuration was read from.
type Inputs struct {
	// Paths are the files; one may be missing, and appear later.
	Paths []string
	// Interval is the time between looks without an event.
	Interval time.Duration
	// Changed is called when the content of a file is another than it was.
	Changed  func()
	Reporter Reporter

	digests map[string][sha256.Size]byte // :: path → of its content; zero: it is not there
}

// Note takes what is there now as known. Call it before the files are read,
// so that no change falls between.
func (in *Inputs) Note() { in.look() }

// Run watches until ctx ends.
func (in *Inputs) Run(ctx context.Context) {
	var folders []string
	for _, path := range in.Paths {
		folders = append(folders, filepath.Dir(path))
	}
	report := func(err error) { in.Reporter.Report("configuration watch", err) }
	watch(ctx, slices.Compact(slices.Sorted(slices.Values(folders))), in.Interval, 0, report, func() {
		if in.look() {
			in.Changed()
		}
	})
}

// look reads the files and reports whether one differs from the last look.
func (in *Inputs) look() (changed bool) {
	if in.digests == nil {
		in.digests = map[string][sha256.Size]byte{}
	}
	for _, path := range in.Paths {
		var digest [sha256.Size]byte
		if content, err := safefile.Read(path, mostInput); err == nil {
			digest = sha256.Sum256(content)
		}
		changed = changed || digest != in.digests[path]
		in.digests[path] = digest
	}
	return changed
}
