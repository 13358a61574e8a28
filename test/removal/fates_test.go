package removal

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
)

// TestTable has each row for each destination and each mode.
func TestTable(t *testing.T) {
	if len(table) < 60 {
		t.Fatalf("%d rows", len(table))
	}
	rows, bases := slices.Clone(table), map[string]base{}
	for i := range rows {
		s := &rows[i].with
		s.lost, s.host = cmp.Or(s.lost, lost), cmp.Or(s.host, "conjur.test")
		s.timeout, s.hold = cmp.Or(s.timeout, patience), cmp.Or(s.hold, time.Hour)
		if _, ok := bases[s.lost]; !ok {
			bases[s.lost] = newBase(t, s.lost)
		}
	}
	for name, destination := range map[string]func(testing.TB) destination{"file": newFiles, "Secret": newKubeSecrets} {
		for _, m := range []mode{oneShot, sidecar} {
			t.Run(name+"/"+string(m), func(t *testing.T) {
				t.Parallel()
				for _, r := range rows {
					t.Run(r.name+": "+string(r.then), func(t *testing.T) {
						t.Parallel()
						r.test(newWorld(t, m, destination(t), bases[r.with.lost], r.with))
					})
				}
			})
		}
	}
}

func (r row) test(w *world) {
	before := w.dest.look()
	w.events = nil
	over := r.happens(w)
	w.next()
	defer w.silent()
	defer func() {
		if w.Failed() {
			w.Logf("said:\n%s", w.said.String())
		}
	}()
	switch r.then {
	case keeps:
		w.keeps(before)
	case goes:
		w.goes(before, w.dest.holding(w.lost))
	case holds:
		w.holds(before)
	case passes:
		w.passes(before)
	case follows:
		w.follows()
		return
	}
	over()
	w.renew(w.lost)
	if len(w.failed) == 0 { // else it is tried again
		w.next()
	}
	w.deliver()
}

// looks is how often a fault is looked at: twice as often as a proof needs.
const looks = 4

func (w *world) keeps(before map[string]sight) {
	w.Helper()
	for range looks {
		w.step()
		w.untouched(before, "in the middle of it")
	}
	if len(w.events) != 0 {
		w.Errorf("events: %+v", w.events)
	}
}

func (w *world) goes(before map[string]sight, holding []string) {
	w.Helper()
	w.step()
	w.untouched(before, "after the first look")
	w.step()
	w.wants(without(before, holding), "after the second look")
	if !strings.Contains(w.said.String(), "the server confirmed it 2 times") || !strings.Contains(w.said.String(), `"`+w.lost+`"`) {
		w.Error("the proof is not told")
	}
	w.step()
	w.wants(without(before, holding), "after the third look")
	if len(w.events) != 0 {
		w.Errorf("events: %+v", w.events)
	}
}

func (w *world) holds(before map[string]sight) {
	w.Helper()
	for range looks {
		w.step()
		w.untouched(before, "while it is held back")
	}
	if len(w.events) != 1 || w.events[0].State != conjur.HoldBegan {
		w.Errorf("events: %+v", w.events)
	}
}

func (w *world) passes(before map[string]sight) {
	w.Helper()
	w.step()
	w.untouched(before, "after the first look")
	ours := func(name string) bool { return !strings.HasSuffix(name, foreign) }
	w.eventually("everything gone", func() bool {
		w.step()
		return !slices.ContainsFunc(slices.Collect(maps.Keys(w.dest.look())), ours)
	})
	if len(w.events) != 2 || w.events[0].State != conjur.HoldBegan || w.events[1].State != conjur.Passed {
		w.Errorf("events: %+v", w.events)
	}
	if !strings.Contains(w.said.String(), "still after it was held back") {
		w.Error("the proof does not tell of the hold")
	}
}

func (w *world) follows() {
	w.Helper()
	w.deliver()
	if len(w.events) != 0 {
		w.Errorf("events: %+v", w.events)
	}
}
