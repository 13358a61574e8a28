package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/fsnotify/fsnotify"
)

// burst is the delay after an event, in which related events arrive.
const burst = 20 * time.Millisecond

// watch calls look at its start, after each burst of events in the folders, and at each
// interval, until ctx ends. It tells look whether there was an event. After an event, it
// waits until least has passed since the last call.
//
// It watches folders rather than the files in them, and every event only causes a look. A
// ConfigMap mount swaps a symlink beside the files, and an editor renames over them. The
// interval covers lost events, folders that appear later, and file systems without
// events.
func watch(ctx context.Context, folders []string, interval, least time.Duration, report func(error), look func(event bool)) {
	var events chan fsnotify.Event // nil, and therefore silent, without a watcher
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
	complete := time.After(0) // a file may have changed before the watch started
	var looked time.Time
	event := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			event = true
			if complete == nil {
				complete = time.After(max(burst, least-time.Since(looked)))
			}
		case err := <-errs:
			report(err)
		case <-complete:
			complete, looked = nil, time.Now()
			look(event)
			event = false
		case <-tick.C:
			if watcher != nil {
				report(add(watcher, folders))
			}
			looked = time.Now()
			look(false)
		}
	}
}

// add watches the folders, also after one was replaced. Watching a watched folder again
// changes nothing.
func add(watcher *fsnotify.Watcher, folders []string) error {
	var failed []error
	for _, folder := range folders {
		if err := watcher.Add(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("watching %s: %w", folder, err))
		}
	}
	return errors.Join(failed...)
}
