package health

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

func TestFreshness(t *testing.T) {
	const key = targets.Key("file/db")
	synctest.Test(t, func(t *testing.T) {
		f := NewFreshness()
		age := func() time.Duration { return f.Ages([]targets.Key{key})[key] }
		expect := func(what string, want time.Duration) {
			t.Helper()
			if got := age(); got != want {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		expect("never synced, at once", 0)
		time.Sleep(10 * time.Second)
		before := f.EverPolled()
		f.Polled()
		if before || !f.EverPolled() {
			t.Errorf("polled: %v, then %v", before, f.EverPolled())
		}
		expect("polled, and never synced", 10*time.Second)
		if len(f.Missing([]targets.Key{key})) == 0 {
			t.Error("not missing without a sync")
		}
		if age := f.SincePoll(); age != 0 {
			t.Errorf("just polled, and the poll is %v ago", age)
		}
		if f.Failure(key) != nil {
			t.Error("failed without a sync")
		}
		f.Settled("file/other", errors.New("no"))
		if f.Failure("file/other") == nil {
			t.Error("a failure is not known")
		}
		f.Settled(key, nil)
		expect("synced", 0)
		time.Sleep(10 * time.Second)
		expect("nothing since", 10*time.Second)
		f.Polled()
		expect("polled", 0)
		time.Sleep(time.Second)
		f.Settled(key, errors.New("no"))
		f.Polled()
		expect("failing", time.Second)
		if len(f.Missing([]targets.Key{key})) > 0 {
			t.Error("a failure takes back a delivery")
		}
		f.Settled(key, nil)
		expect("well again", 0)
		if f.Failure(key) != nil {
			t.Error("a failure that is over is still known")
		}
		f.Forget(key)
		expect("forgotten", 11*time.Second+10*time.Second)
	})
}
