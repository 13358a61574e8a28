package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/sources"
)

// loading is the Kubernetes Secrets of a one-shot process, which reads them and watches
// none.
type loading struct {
	secrets *secrets

	// The Secrets that prime could not read, and the reasons. Until completed is true,
	// only prime and complete use these fields.
	unread    []*sources.Secrets
	unreadFor error
	completed atomic.Bool
}

// prime reads the existing Secrets.
func (l *loading) prime(ctx context.Context) {
	l.unread, l.unreadFor = loadAll(ctx, l.secrets.watches())
}

// prepare implements destination.
func (l *loading) prepare(before, cfg *config.Config) (change, error) {
	return l.secrets.prepare(before, cfg)
}

// sources returns the tasks, and the checks for Secrets that did not exist yet.
func (l *loading) sources() []source { return append(slices.Clone(l.secrets.tasks), l) }

// loadAll returns the watches that could not be loaded, and the reasons.
func loadAll(ctx context.Context, watches []*sources.Secrets) (unread []*sources.Secrets, why error) {
	for _, watch := range watches {
		if err := load(ctx, watch); err != nil {
			unread = append(unread, watch)
			why = errors.Join(why, err)
		}
	}
	return unread, why
}

// load reads the Secrets that a watch would follow.
func load(ctx context.Context, watch *sources.Secrets) error {
	watch.Prime(ctx)
	return watch.Complete()
}

// complete reads the Secrets that prime could not read.
func (l *loading) complete(ctx context.Context) error {
	defer l.completed.Store(true)
	unread, why := l.unread, l.unreadFor
	tried := false // whether complete has tried; prime did before
	return backoff.Retry(func() error {
		if tried {
			unread, why = loadAll(ctx, unread)
		}
		tried = true
		return why
	}, backoff.WithContext(limited(l.secrets.settings.config()), ctx))
}

// limited returns the count and the backoff of retries in a one-shot process.
func limited(cfg *config.Config) backoff.BackOff {
	pauses := backoffOf(cfg).Start()
	if cfg.Retry.Limit < 0 {
		return pauses
	}
	return backoff.WithMaxRetries(pauses, uint64(cfg.Retry.Limit))
}

// Run checks again for Secrets that the process waits for.
func (l *loading) Run(ctx context.Context) {
	every(ctx, min(max(l.secrets.settings.config().Retry.Interval, time.Second), secretsLook), func() {
		for _, watch := range l.secrets.watches() {
			if l.completed.Load() || !slices.Contains(l.unread, watch) {
				_ = load(ctx, watch) // load reports the error
			}
		}
	})
}
