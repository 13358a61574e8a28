package workers

import (
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

// peaceful is told of the end of contests.
type peaceful struct {
	ContestListener
	ended []targets.Key
}

func (p *peaceful) Peace(key targets.Key) { p.ended = append(p.ended, key) }

// A Secret is corrected at most once a second. After an hour of peace, its corrections are
// counted anew, and the listener of a contest is told.
func TestCorrectionsAreSpaced(t *testing.T) {
	for _, corrections := range []int{contestedFrom - 1, contestedFrom, contestedFrom + 1} {
		told := &peaceful{}
		f := NewDrift(nil, told, nil)
		const key = targets.Key("secret/ns/s")
		now := time.Now()
		for i := range corrections {
			if f.delays(key, now) {
				t.Fatalf("correction %d is delayed", i)
			}
			if got := f.count(key, now); got != i+1 {
				t.Errorf("correction %d is the %dth", i, got)
			}
			if !f.delays(key, now.Add(correctionGap-1)) || f.delays(key, now.Add(correctionGap)) {
				t.Errorf("correction %d is not followed by a second without one", i)
			}
			now = now.Add(correctionGap)
			if due, _ := f.due(now); due != key {
				t.Errorf("the correction after %d is not due", i)
			}
		}
		now = now.Add(peace - correctionGap)
		if due, wait := f.due(now.Add(-1)); due != "" || wait != 1 || len(told.ended) > 0 {
			t.Errorf("before an hour has passed: %q is due, wait %v, ended %v", due, wait, told.ended)
		}
		if due, _ := f.due(now); due != "" || len(told.ended) > 0 != (corrections >= contestedFrom) || f.count(key, now) != 1 {
			t.Errorf("after an hour: %q is due, ended %v", due, told.ended)
		}
	}
}

// TestADeletedSecretHasNoContest: one of the same name begins anew, and others go on.
func TestADeletedSecretHasNoContest(t *testing.T) {
	told := &peaceful{}
	f, now := NewDrift(nil, told, nil), time.Now()
	for range 3 {
		f.count("secret/ns/s", now)
		f.count("secret/ns/other", now)
	}
	f.Forget("secret/ns/s")
	if due, _ := f.due(now.Add(correctionGap)); due != "" || len(told.ended) != 1 || f.count("secret/ns/s", now) != 1 {
		t.Errorf("after the deletion: %q is due, ended %v", due, told.ended)
	}
	if n := f.count("secret/ns/other", now); n != 4 {
		t.Errorf("another Secret: %d corrections", n)
	}
}
