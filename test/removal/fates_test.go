package removal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/test/proctest"
)

// columns are the variations of each row: the destination, and whether the server is asked
// about the variable in question alone or in a batch. An id with a comma is always asked
// about alone.
var columns = []struct {
	name        string
	destination func(testing.TB) destination
	suffix      string // of the variable's id
}{
	{"file", newFiles, ""},
	{"file, asked alone", newFiles, ",1"},
	{"Secret", newKubeSecrets, ""},
}

// tried reports whether the nth row runs with a column and in a mode. With -short some
// combinations are omitted, because the meaning of an answer depends on neither the
// destination nor the mode. Of the rows in which everything is kept, a tenth runs with the
// other columns.
func (r row) tried(n int, column string, m mode) bool {
	return !testing.Short() || column != "Secret" && m == sidecar || r.then != keeps || n%10 == 0
}

// TestTable runs each row with its columns and modes.
func TestTable(t *testing.T) {
	if len(table) < 60 {
		t.Fatalf("%d rows", len(table))
	}
	bases := map[string]base{}
	for _, c := range columns {
		for _, m := range []mode{oneShot, sidecar} {
			t.Run(c.name+"/"+string(m), func(t *testing.T) {
				for n, r := range table {
					if !r.tried(n, c.name, m) {
						continue
					}
					s := r.with.complete(c.suffix)
					if _, ok := bases[s.lost]; !ok {
						bases[s.lost] = newBase(t, s.lost)
					}
					b := bases[s.lost]
					t.Run(r.name+": "+string(r.then), func(t *testing.T) {
						t.Parallel()
						r.test(newWorld(t, m, c.destination(t), b, s))
					})
				}
			})
		}
	}
}

// complete returns the setting with its defaults.
func (s setting) complete(suffix string) setting {
	s.lost, s.host = cmp.Or(s.lost, "app/password")+suffix, cmp.Or(s.host, "variables.test")
	s.timeout, s.hold = cmp.Or(s.timeout, proctest.Patience), cmp.Or(s.hold, time.Hour)
	return s
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

// looks is the number of polls or retries during a fault: twice the number that a proof
// needs.
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
	if len(w.events) != 1 || w.events[0].State != variables.HoldBegan {
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
	if len(w.events) != 2 || w.events[0].State != variables.HoldBegan || w.events[1].State != variables.Passed {
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

// inEachWorld runs a test in a separate world for each destination and mode.
func inEachWorld(t *testing.T, test func(t *testing.T, w *world)) {
	s := setting{}.complete("")
	b := newBase(t, s.lost)
	for name, destination := range map[string]func(testing.TB) destination{"file": newFiles, "Secret": newKubeSecrets} {
		for _, m := range []mode{oneShot, sidecar} {
			t.Run(name+"/"+string(m), func(t *testing.T) {
				t.Parallel()
				test(t, newWorld(t, m, destination(t), b, s))
			})
		}
	}
}

// TestSwitchedOff: with removal disabled, Syncer reports values that are gone, and keeps
// them.
func TestSwitchedOff(t *testing.T) {
	inEachWorld(t, func(t *testing.T, w *world) {
		before := w.dest.look()
		deletes(w)
		w.next()
		w.syncer.Policy.RemoveRevoked = false
		w.keeps(before)
		if !strings.Contains(w.said.String(), "removal is switched off") || !strings.Contains(w.said.String(), "the server confirmed it 2 times") {
			t.Errorf("not told:\n%s", w.said.String())
		}
	})
}

// TestMissingFromTheStart: variables that never existed delay no other variable, and the
// error names all of them.
func TestMissingFromTheStart(t *testing.T) {
	inEachWorld(t, func(t *testing.T, w *world) {
		delivered := contents(w.dest.look())
		w.dest.clear()
		for _, id := range []string{w.lost, kept} {
			w.load(fmt.Sprintf("- !delete { record: !variable %q }\n", id))
		}
		w.process()
		for range looks {
			w.step()
		}
		for name := range delivered {
			if strings.HasPrefix(name, "first") && !strings.HasSuffix(name, foreign) {
				delete(delivered, name)
			}
		}
		w.wants(delivered, "without two variables")
		for _, id := range []string{w.lost, kept} {
			_, why, _ := strings.Cut(w.said.String(), "there is no value in Conjur")
			if why, _, _ = strings.Cut(why, "\n"); !strings.Contains(why, id) {
				t.Errorf("%s is not named:\n%s", id, w.said.String())
			}
		}
		w.define(w.lost, kept)
		w.renew(w.lost, kept)
		w.deliver()
	})
}
