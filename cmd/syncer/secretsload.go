package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/sources"
)

// prepare reads, in a one-shot process, what there is; otherwise the watches
// do.
func (s *secretsPlace) prepare(ctx context.Context) {
	if !s.cfg.Mode.OneShot() {
		return
	}
	var errs []error
	for _, watch := range s.watches {
		if err := s.load(ctx, watch); err != nil {
			s.unread = append(s.unread, watch)
			errs = append(errs, err)
		}
	}
	s.unreadFor = errors.Join(errs...)
}

// load reads what a watch would tell of.
func (s *secretsPlace) load(ctx context.Context, watch *sources.Secrets) error {
	err := watch.Load(ctx)
	if ctx.Err() == nil {
		s.troubles.Report("secrets of "+watch.Namespace, err)
	}
	return err
}

// complete reads what prepare could not.
func (s *secretsPlace) complete(ctx context.Context) error {
	defer s.completed.Store(true)
	unread, tried := slices.Clone(s.unread), true
	return backoff.Retry(func() error {
		if tried {
			tried = false
			return s.unreadFor
		}
		var errs []error
		unread = slices.DeleteFunc(unread, func(watch *sources.Secrets) bool {
			err := s.load(ctx, watch)
			errs = append(errs, err)
			return err == nil
		})
		return errors.Join(errs...)
	}, backoff.WithContext(limited(s.cfg.Retry), ctx))
}

// limited is how often, and how fast, a one-shot process tries again.
func limited(r config.Retry) backoff.BackOff {
	pauses := backoff.NewExponentialBackOff(backoff.WithInitialInterval(max(r.Interval, time.Millisecond)),
		backoff.WithMaxInterval(longestRetry), backoff.WithMaxElapsedTime(0))
	if r.Limit < 0 {
		return pauses
	}
	return backoff.WithMaxRetries(pauses, uint64(r.Limit))
}

// reload looks again for Secrets that a one-shot process waits for.
func (s *secretsPlace) reload(ctx context.Context) {
	tick := time.NewTicker(min(max(s.cfg.Retry.Interval, time.Second), secretsLook))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, watch := range s.watches {
			if s.completed.Load() || !slices.Contains(s.unread, watch) {
				_ = s.load(ctx, watch) // which reports it
			}
		}
	}
}
