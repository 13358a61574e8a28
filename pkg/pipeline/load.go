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

// prime reads the existing Secrets in a one-shot process. Otherwise the watches read
// them.
func (s *secrets) prime(ctx context.Context) {
	if s.settings.config().Mode.OneShot() {
		s.unread, s.unreadFor = s.loadAll(ctx, s.watches())
	}
}

// loadAll returns the watches that could not be loaded, and the reasons.
func (s *secrets) loadAll(ctx context.Context, watches []*sources.Secrets) (unread []*sources.Secrets, why error) {
	for _, watch := range watches {
		if err := s.load(ctx, watch); err != nil {
			unread = append(unread, watch)
			why = errors.Join(why, err)
		}
	}
	return unread, why
}

// load reads the Secrets that a watch would follow.
func (s *secrets) load(ctx context.Context, watch *sources.Secrets) error {
	watch.Prime(ctx)
	return watch.Complete()
}

// complete reads the Secrets that prime could not read.
func (s *secrets) complete(ctx context.Context) error {
	defer s.completed.Store(true)
	unread, why := s.unread, s.unreadFor
	tried := false // whether complete has tried; prime did before
	return backoff.Retry(func() error {
		if tried {
			unread, why = s.loadAll(ctx, unread)
		}
		tried = true
		return why
	}, backoff.WithContext(limited(s.settings.config()), ctx))
}

// limited returns the count and the backoff of retries in a one-shot process.
func limited(cfg *config.Config) backoff.BackOff {
	pauses := backoffOf(cfg).Start()
	if cfg.Retry.Limit < 0 {
		return pauses
	}
	return backoff.WithMaxRetries(pauses, uint64(cfg.Retry.Limit))
}

// reloading checks again for Secrets that a one-shot process waits for.
type reloading struct{ secrets *secrets }

func (r reloading) Run(ctx context.Context) {
	s := r.secrets
	every(ctx, min(max(s.settings.config().Retry.Interval, time.Second), secretsLook), func() {
		for _, watch := range s.watches() {
			if s.completed.Load() || !slices.Contains(s.unread, watch) {
				_ = s.load(ctx, watch) // load reports the error
			}
		}
	})
}
