package variables_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
)

// refuseBatches is for tests that want every variable to be asked for singly.
func refuseBatches(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
	if kind == conjur.KindBatch {
		conjurtest.Bare(w, http.StatusForbidden)
	}
	return kind == conjur.KindBatch
}

func TestUnchangedPollMovesNoValue(t *testing.T) {
	d := conjurtest.New()
	ids := append(conjurtest.Names(200), "with,comma")
	d.Fill(ids)
	c := start(t, d, nil)
	c.Fetch(t.Context(), ids)
	poll(t, c, ids) // learns the ETags
	d.Log()
	before := d.Conns
	for range 5 {
		poll(t, c, ids)
	}
	log := d.Log()
	if conjurtest.Count(log, conjur.KindBatch) != 5 || conjurtest.Count(log, conjur.KindVariable) != 5 || len(log) != 10 {
		t.Errorf("%d requests in 5 polls, want one batch and the one with a comma in each", len(log))
	}
	for _, a := range log {
		if a.Status != http.StatusNotModified || a.Bytes != 0 {
			t.Errorf("%s: status %d with %d bytes", a.Target, a.Status, a.Bytes)
		}
		if a.Kind == conjur.KindBatch && a.Header.Get("Accept-Encoding") != "base64" {
			t.Errorf("Accept-Encoding %q", a.Header.Get("Accept-Encoding"))
		}
	}
	if d.Conns != before {
		t.Errorf("%d new connections", d.Conns-before)
	}
}

func TestChangedNamesWhatChanged(t *testing.T) {
	d := conjurtest.New()
	ids := append(conjurtest.Names(50), "with,comma")
	d.Fill(ids)
	c := start(t, d, nil)
	c.Fetch(t.Context(), ids)
	poll(t, c, ids)
	d.Set(ids[7], "new")
	d.Set("with,comma", "new")
	poll(t, c, ids, ids[7], "with,comma")
	poll(t, c, ids)
}

func TestFirstPollComparesWithWhatWasDelivered(t *testing.T) {
	d := conjurtest.New()
	d.Set("app/a", "v1")
	c := start(t, d, nil)
	wantFound(t, fetch(t, c, "app/a"), "v1")
	d.Set("app/a", "v2")
	poll(t, c, []string{"app/a"}, "app/a")
	poll(t, c, []string{"app/a"})
}

// A fetch between two polls may deliver a value that neither of them sees.
func TestValueThatFlipsBackBetweenPollsIsReported(t *testing.T) {
	d := conjurtest.New()
	ids := []string{"app/a", "app/b"}
	d.Fill(ids)
	d.Set("app/a", "v1")
	c := start(t, d, nil)
	c.Fetch(t.Context(), ids)
	poll(t, c, ids)
	d.Set("app/a", "v2")
	wantFound(t, fetch(t, c, "app/a"), "v2")
	d.Set("app/a", "v1")
	d.Log()
	poll(t, c, ids, "app/a")
	if log := d.Log(); len(log) != 1 || log[0].Status != http.StatusNotModified {
		t.Errorf("the chunk should be as before: %+v", log)
	}
	poll(t, c, ids)
}

// The first delivered value is the baseline: a later fetch for another target
// does not hide the change from the first one.
func TestSecondFetchDoesNotHideAChange(t *testing.T) {
	d := conjurtest.New()
	d.Set("app/a", "v1")
	c := start(t, d, nil)
	wantFound(t, fetch(t, c, "app/a"), "v1")
	d.Set("app/a", "v2")
	wantFound(t, fetch(t, c, "app/a"), "v2")
	poll(t, c, []string{"app/a"}, "app/a")
}

func TestFetchBeforeItsPollIsNotForgotten(t *testing.T) {
	d := conjurtest.New()
	d.Fill([]string{"app/a", "app/new"})
	c := start(t, d, nil)
	poll(t, c, []string{"app/a"})
	fetch(t, c, "app/new")        // a target that is new,
	poll(t, c, []string{"app/a"}) // and a poll whose list is from before
	d.Set("app/new", "v2")
	poll(t, c, []string{"app/a", "app/new"}, "app/new")
}

func TestWhatIsNoLongerAskedIsForgotten(t *testing.T) {
	d := conjurtest.New()
	ids := []string{"app/a", "app/b"}
	d.Fill(ids)
	c := start(t, d, nil)
	poll(t, c, ids)
	poll(t, c, ids[:1])
	poll(t, c, ids[:1])
	d.Set("app/b", "v2")
	poll(t, c, ids) // nobody holds app/b, so there is no change to tell of
}

func TestOneIDThatComesOrGoesLeavesOtherChunksAlone(t *testing.T) {
	d, ids := conjurtest.Filled(400)
	d.Fill([]string{"app/v0000a"})
	c := start(t, d, nil)
	poll(t, c, ids)
	batches := conjurtest.Count(d.Log(), conjur.KindBatch)
	if batches < 2 {
		t.Fatalf("%d batches; the test needs more", batches)
	}
	for _, list := range [][]string{append(slices.Clone(ids), "app/v0000a"), ids, ids[1:]} {
		poll(t, c, list)
		full := 0
		for _, a := range d.Log() {
			if a.Status == http.StatusOK {
				full++
			}
		}
		if full > 1 {
			t.Errorf("%d of %d chunks were sent again for one id", full, batches)
		}
	}
}

// What was left out of a target because it seemed to be missing has no value to
// compare with when it is there after all.
func TestFoundAfterAMereSuspicionIsReported(t *testing.T) {
	d := conjurtest.New()
	ids := []string{"app/a", "app/b"}
	d.Fill(ids)
	d.Change("app/b", func(v *conjurtest.Variable) { v.Missing = true })
	c := start(t, d, nil)
	wantSuspect(t, c.Fetch(t.Context(), ids)["app/b"])
	d.Change("app/b", func(v *conjurtest.Variable) { v.Missing = false })
	poll(t, c, ids, "app/b")
	poll(t, c, ids)
}
