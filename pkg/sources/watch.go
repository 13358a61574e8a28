package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long to wait after an event for those that follow it.
const settle = 20 * time.Millisecond

// watch calls look at its start, after each burst of events in the folders but
// not sooner than least after the look before, and at each interval, until ctx
// ends. Folders are watched rather than the
// files in them, and every event is only a reason to look: a ConfigMap mount
// swaps a symlink beside the files, an editor renames over them. The interval
// is for events that were lost, for folders that appear later, and for file
// systems that have no events.
func watch(ctx context.Context, folders []string, interval, least time.Duration, report func(error), look func()) {
	var events chan fsnotify.Event // nil, so silent, without a watcher
	var errs chan error
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		report(fmt.Errorf("%w (continuing with a look every %v)", err, interval))
	} else {
		defer func() { _ = watcher.Close() }()
		events, errs = watcher.Events, watcher.Errors
		report(add(watcher, folders))
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	settled := time.After(0) // a file may have changed before it was watched
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			if settled == nil {
				settled = time.After(max(settle, least-time.Since(looked)))
			}
		case err := <-errs:
			report(err)
		case <-settled:
			settled, looked = nil, time.Now()
			look()
		case <-tick.C:
			if watcher != nil {
				report(add(watcher, folders))
			}
			looked = time.Now()
			look()
		}
	}
}

// add begins to watch the folders, again after one was replaced. Watching what
// is watched already changes nothing.
func add(watcher *fsnotify.Watcher, folders []string) error {
	var failed []error
	for _, folder := range folders {
		if err := watcher.Add(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("watching %s: %w", folder, err))
		}
	}
	return errors.Join(failed...)
}
