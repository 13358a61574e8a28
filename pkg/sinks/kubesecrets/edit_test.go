package kubesecrets

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A revision is greater than the last, whatever the clock says, and does not
// mind one that somebody else wrote.
func TestNextRevision(t *testing.T) {
	now := time.UnixMilli(1000)
	for current, want := range map[string]string{"": "1000", "7": "1000", "999": "1000", "1000": "1001", "5000": "5001", "none": "1000", "-3": "1000", "9223372036854775808": "1000"} {
		if got := nextRevision(current, now); got != want {
			t.Errorf("after %q comes %q, want %q", current, got, want)
		}
	}
}

// The wait between two attempts ends with the context.
func TestPauseEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	for attempt := range 3 {
		if err := pause(ctx, attempt); err != nil {
			t.Errorf("attempt %d: %v", attempt, err)
		}
	}
	cancel()
	for _, attempt := range []int{0, 1 << 30} {
		if err := pause(ctx, attempt); !errors.Is(err, context.Canceled) {
			t.Errorf("attempt %d, ended: %v", attempt, err)
		}
	}
}
