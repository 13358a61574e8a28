package wake_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/internal/wake"
)

func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		var w wake.Wake
		w.Rouse()
		w.Rouse() // does not block, and counts once
		began := time.Now()
		var at []time.Duration
		waits := []time.Duration{time.Hour, 0, 1, -1, 2 * time.Hour, time.Hour}
		w.Loop(ctx, func() time.Duration {
			at = append(at, time.Since(began))
			switch len(at) {
			case 5:
				time.AfterFunc(time.Minute, w.Rouse)
			case 6:
				time.AfterFunc(time.Minute, end)
			}
			return waits[len(at)-1]
		})
		at = append(at, time.Since(began))
		if want := []time.Duration{0, 0, 0, 1, time.Hour + 1, time.Hour + time.Minute + 1, time.Hour + 2*time.Minute + 1}; !slices.Equal(at, want) {
			t.Errorf("it was awake after %v, want %v", at, want)
		}
	})
}

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithTimeout(t.Context(), 3*time.Second-1)
		defer end()
		began, calls := time.Now(), 0
		wake.Every(ctx, time.Second, func() { calls++ })
		if took := time.Since(began); calls != 2 || took != 3*time.Second-1 {
			t.Errorf("%d calls until %v", calls, took)
		}
	})
}
