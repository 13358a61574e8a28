package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// patience bounds the wait for files.
const patience = 30 * time.Second

// watch observes files as they arrive.
type watch struct {
	world   *world
	watcher *fsnotify.Watcher
}

// newWatch starts before the expected changes, so that it misses none.
func newWatch(w *world) (*watch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := watcher.Add(w.path("secrets")); err != nil {
		return nil, errors.Join(err, watcher.Close())
	}
	return &watch{w, watcher}, nil
}

func (w *watch) close() error { return w.watcher.Close() }

// until waits until the groups' files hold their values. It returns the time when
// the last of them was observed.
func (w *watch) until(ctx context.Context, groups ...group) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("files missing after %s", patience))
	defer cancel()
	missing := map[string]group{}
	for _, g := range groups {
		if !w.world.holds(g) {
			missing[g.file()] = g
		}
	}
	for len(missing) > 0 {
		select {
		case e := <-w.watcher.Events:
			name := filepath.Base(e.Name)
			if g, ok := missing[name]; ok && w.world.holds(g) {
				delete(missing, name)
			}
		case err := <-w.watcher.Errors:
			return time.Time{}, err
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
	return time.Now(), nil
}
