package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/sources"
)

// prime reads, in a one-shot process, what there is; otherwise the watches
// do.
func (s *secrets) prime(ctx context.Context) {
	if s.config().Mode.OneShot() {
		s.unread, s.unreadFor = s.loadAll(ctx, s.watches())
	}
}

// loadAll returns which of the watches could not be loaded, and why.
func (s *secrets) loadAll(ctx context.Context, watches []*sources.Secrets) (unread []*sources.Secrets, why error) {
	for _, watch := range watches {
		if err := s.load(ctx, watch); err != nil {
			unread = append(unread, watch)
			why = errors.Join(why, err)
		}
	}
	return unread, why
}

// load reads what a watch would follow.
func (s *secrets) load(ctx context.Context, watch *sources.Secrets) error {
	watch.Prime(ctx)
	return watch.Complete()
}

// complete reads what prime could not.
func (s *secrets) complete(ctx context.Context) error {
	defer s.completed.Store(true)
	unread, why := s.unread, s.unreadFor
	tried := false // by complete; prime did
	return backoff.Retry(func() error {
		if tried {
			unread, why = s.loadAll(ctx, unread)
		}
		tried = true
		return why
	}, backoff.WithContext(limited(s.config()), ctx))
}

// limited is how often, and how fast, a one-shot process tries again.
func limited(cfg *config.Config) backoff.BackOff {
	pauses := backoffOf(cfg).Start()
	if cfg.Retry.Limit < 0 {
		return pauses
	}
	return backoff.WithMaxRetries(pauses, uint64(cfg.Retry.Limit))
}

// reloading looks again for Secrets that a one-shot process waits for.
type reloading struct{ *secrets }

func (s reloading) Run(ctx context.Context) {
	tick := time.NewTicker(min(max(s.config().Retry.Interval, time.Second), secretsLook))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, watch := range s.watches() {
			if s.completed.Load() || !slices.Contains(s.unread, watch) {
				_ = s.load(ctx, watch) // which reports it
			}
		}
	}
}
