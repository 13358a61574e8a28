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
		f.Polled()
		expect("polled, and never synced", 10*time.Second)
		if f.Delivered([]targets.Key{key}) {
			t.Error("delivered without a sync")
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
		if !f.Delivered([]targets.Key{key}) {
			t.Error("a failure takes back a delivery")
		}
		f.Settled(key, nil)
		expect("well again", 0)
		f.Forget(key)
		expect("forgotten", 11*time.Second+10*time.Second)
	})
}
