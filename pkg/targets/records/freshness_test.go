package records

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
)

func TestUnproven(t *testing.T) {
	set := &Set{}
	lane, other := set.Lane(""), set.Lane("other")
	for _, key := range []targets.Key{"file/c", "file/proven", "file/a", "file/failed"} {
		lane.Put(&targets.Target{Key: key})
	}
	other.Put(&targets.Target{Key: "file/b"})
	for key, err := range map[targets.Key]error{"file/proven": nil, "file/failed": errors.New("no")} {
		r, _ := lane.Begin(key)
		r.Status.Err = err
		lane.Settle(r)
	}
	untried, failed, of := lane.Unproven()
	if want := []targets.Key{"file/a", "file/c"}; !slices.Equal(untried, want) || of != 4 {
		t.Errorf("%v of %d were not tried, want %v of 4", untried, of, want)
	}
	if len(failed) != 1 || failed[0].Spec.Key != "file/failed" {
		t.Errorf("%v failed, want only the one with an error", failed)
	}
}

func TestFreshness(t *testing.T) {
	const key = targets.Key("file/db")
	synctest.Test(t, func(t *testing.T) {
		f := &Lane{}
		f.Put(&targets.Target{Key: key})
		f.Put(&targets.Target{Key: "file/other"})
		settled := func(key targets.Key, err error) {
			r, _ := f.Begin(key)
			r.Status.Err = err
			f.Settle(r)
		}
		status := func(key targets.Key) Status {
			for _, r := range f.Records() {
				if r.Spec.Key == key {
					return r.Status
				}
			}
			t.Fatalf("%s is not there", key)
			return Status{}
		}
		age := func() time.Duration { return f.Ages()[key] }
		expect := func(what string, want time.Duration) {
			t.Helper()
			if got := age(); got != want {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		expect("never synced, at once", 0)
		time.Sleep(10 * time.Second)
		_, before := f.SincePoll()
		f.Polled()
		since, after := f.SincePoll()
		if before || !after {
			t.Errorf("polled: %v, then %v", before, after)
		}
		expect("polled, and never synced", 10*time.Second)
		if !status(key).Proven.IsZero() {
			t.Error("not missing without a sync")
		}
		if since != 0 {
			t.Errorf("just polled, and the poll is %v ago", since)
		}
		if status(key).Err != nil {
			t.Error("failed without a sync")
		}
		settled("file/other", errors.New("no"))
		if status("file/other").Err == nil {
			t.Error("a failure is not known")
		}
		settled(key, nil)
		expect("synced", 0)
		time.Sleep(10 * time.Second)
		expect("nothing since", 10*time.Second)
		f.Polled()
		expect("polled", 0)
		time.Sleep(time.Second)
		settled(key, errors.New("no"))
		f.Polled()
		expect("failing", time.Second)
		if status(key).Proven.IsZero() {
			t.Error("a failure takes back a delivery")
		}
		settled(key, nil)
		expect("well again", 0)
		if status(key).Err != nil {
			t.Error("a failure that is over is still known")
		}
		f.Delete(key)
		f.Put(&targets.Target{Key: key})
		expect("forgotten", 11*time.Second+10*time.Second)
	})
}

// What was looked at when there was nothing says nothing of what came later.
func TestAPollOfNothingDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Lane{}
		l.Polled()
		time.Sleep(time.Minute)
		l.Put(&targets.Target{Key: "secret/shop/db"})
		if ago, ever := l.SincePoll(); ago != 0 || ever {
			t.Errorf("polled %v ago (ever: %v) before the first target came", ago, ever)
		}
		l.Polled()
		l.Put(&targets.Target{Key: "secret/shop/other"})
		if _, ever := l.SincePoll(); !ever {
			t.Error("a second target makes the poll of the first undone")
		}
	})
}

// A target is limited by warnings of its definition, and by those of its users that did
// not get it, as long as the definition names them.
func TestLimited(t *testing.T) {
	set := &Set{}
	lane := set.Lane("")
	const key = targets.Key("secret/ns/db")
	put := func(warnings []targets.Fault, users ...string) {
		lane.Put(&targets.Target{Key: key, Secret: &targets.Secret{Namespace: "ns", Name: "db", Restart: users, PullFor: []string{"default"}, Warnings: warnings}})
	}
	want := func(when string, want ...string) {
		t.Helper()
		if got := lane.Limited()[key]; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	lane.Put(&targets.Target{Key: "file/a"})
	set.Hinder("secret/ns/other", "default", errors.New("no")) // is not there
	put(nil, "deployment/web")
	want("at first")
	set.Hinder(key, "deployment/web", errors.New("forbidden"))
	set.Hinder(key, "default", errors.New("missing"))
	want("two users", "deployment/web: forbidden", "default: missing")
	put([]targets.Fault{{Place: "conjur-map", Why: "empty"}})
	want("one user is not named any more", "conjur-map: empty", "default: missing")
	set.Hinder(key, "default", nil)
	want("the other got it", "conjur-map: empty")
	set.Hinder(key, Contest, errors.New("helm changes a"))
	want("another client changes it", "conjur-map: empty", "contested: helm changes a")
}
