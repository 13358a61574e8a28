package notify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// Provided returns the missing content, as the status folder reports it, unless all
// secrets have been provided once.
func Provided(dir string) error {
	status := OpenStatus(dir)
	if provided, err := status.Provided(); provided || err != nil {
		return err
	}
	missing, err := status.Missing()
	switch {
	case err != nil:
		missing = fmt.Sprintf("not known: %v", err)
	case missing == "":
		missing = "not known; see the log of Syncer"
	}
	return fmt.Errorf("the secrets have not been provided yet; missing: %s", missing)
}

// Unchanged returns an error once after the secrets were updated.
func Unchanged(dir string) error {
	updated, err := OpenStatus(dir).TakeUpdated()
	if err == nil && updated {
		err = errors.New("the secrets were updated")
	}
	return err
}

// Alive returns an error if the sidecar's heart has not beaten since the last call.
func Alive(dir string) error {
	beat, err := OpenStatus(dir).TakeBeat()
	if err == nil && !beat {
		err = errors.New("no heartbeat since the last probe")
	}
	return err
}

// waitStep is the time between two checks of the status folder.
const waitStep = 200 * time.Millisecond

// Wait waits until all secrets have been provided. If most is zero, it waits without a
// limit.
func Wait(ctx context.Context, dir string, most time.Duration) error {
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	err := waitProvided(ctx, OpenStatus(dir))
	if errors.Is(err, context.DeadlineExceeded) {
		if err = Provided(dir); err != nil {
			err = fmt.Errorf("not there after %v: %w", most, err)
		}
	}
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", filepath.Join(dir, ProvidedFile), err)
	}
	return nil
}

func waitProvided(ctx context.Context, status *Status) error {
	look := time.NewTicker(waitStep)
	defer look.Stop()
	for {
		if provided, err := status.Provided(); provided || err != nil {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
