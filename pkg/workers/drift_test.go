package workers

import (
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// Corrections are spaced more and more, and a quiet time ends the fight.
func TestCorrectionsAreSpaced(t *testing.T) {
	f := NewDrift(nil, nil, nil)
	const key = targets.Key("secret/ns/s")
	now := time.Now()
	want := []time.Duration{0, 0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
	for i, pause := range want {
		if f.delays(key, now) {
			t.Fatalf("correction %d is delayed", i)
		}
		if got := f.count(key, now); got != pause {
			t.Errorf("a pause of %v after correction %d, want %v", got, i, pause)
		}
		if got := f.delays(key, now); got != (pause > 0) {
			t.Errorf("the one after correction %d is delayed: %v", i, got)
		}
		now = now.Add(pause)
	}
	for range 20 {
		now = now.Add(f.count(key, now))
	}
	if got := f.count(key, now); got != longestFight {
		t.Errorf("a pause of %v in the end", got)
	}
	now = now.Add(2*longestFight + peace + time.Second)
	if f.delays(key, now) || f.count(key, now) != 0 {
		t.Error("the fight is not over after a quiet time")
	}
}

// TestADeletedSecretHasNoFight: one of the same name begins anew, and others go on.
func TestADeletedSecretHasNoFight(t *testing.T) {
	f, now := NewDrift(nil, nil, nil), time.Now()
	for range 3 {
		f.count("secret/ns/s", now)
		f.count("secret/ns/other", now)
	}
	f.Forget("secret/ns/s")
	if pause := f.count("secret/ns/s", now); pause != 0 {
		t.Errorf("after the deletion: a pause of %v", pause)
	}
	if pause := f.count("secret/ns/other", now); pause != 2*time.Second {
		t.Errorf("another Secret: a pause of %v", pause)
	}
}

// TestBoundsOfPeace: a fight ends only after the pause and a minute.
func TestBoundsOfPeace(t *testing.T) {
	for less := time.Duration(-1); less <= 1; less++ {
		f := NewDrift(nil, nil, nil)
		const key = targets.Key("secret/ns/s")
		now := time.Now()
		for range 3 {
			f.count(key, now)
		}
		if !f.delays(key, now.Add(time.Second-1)) || f.delays(key, now.Add(time.Second)) {
			t.Error("the pause is not a second")
		}
		now = now.Add(2*time.Second + time.Minute + less)
		f.delays(key, now)
		if pause := f.count(key, now); (pause == 0) != (less > 0) {
			t.Errorf("the bound%+d: a pause of %v", less, pause)
		}
	}
}
