package conjur_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
)

// refuseBatches is for tests that want every variable to be asked for singly.
func refuseBatches(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
	if kind == conjur.KindBatch {
		empty(w, http.StatusForbidden)
	}
	return kind == conjur.KindBatch
}

func TestUnchangedPollMovesNoValue(t *testing.T) {
	d := newDouble()
	ids := append(names(200), "with,comma")
	d.fill(ids)
	c := start(t, d, nil)
	c.Fetch(t.Context(), ids)
	poll(t, c, ids) // learns the ETags
	d.log()
	before := d.conns
	for range 5 {
		poll(t, c, ids)
	}
	log := d.log()
	if count(log, conjur.KindBatch) != 5 || count(log, conjur.KindVariable) != 5 || len(log) != 10 {
		t.Errorf("%d requests in 5 polls, want one batch and the one with a comma in each", len(log))
	}
	for _, a := range log {
		if a.status != http.StatusNotModified || a.bytes != 0 {
			t.Errorf("%s: status %d with %d bytes", a.target, a.status, a.bytes)
		}
		if a.kind == conjur.KindBatch && a.header.Get("Accept-Encoding") != "base64" {
			t.Errorf("Accept-Encoding %q", a.header.Get("Accept-Encoding"))
		}
	}
	if d.conns != before {
		t.Errorf("%d new connections", d.conns-before)
	}
}

func TestChangedNamesWhatChanged(t *testing.T) {
	d := newDouble()
	ids := append(names(50), "with,comma")
	d.fill(ids)
	c := start(t, d, nil)
	c.Fetch(t.Context(), ids)
	poll(t, c, ids)
	d.set(ids[7], "new")
	d.set("with,comma", "new")
	poll(t, c, ids, ids[7], "with,comma")
	poll(t, c, ids)
}

func TestFirstPollComparesWithWhatWasDelivered(t *testing.T) {
	d := newDouble()
	d.set("app/a", "v1")
	c := start(t, d, nil)
	wantFound(t, fetch(t, c, "app/a"), "v1")
	d.set("app/a", "v2")
	poll(t, c, []string{"app/a"}, "app/a")
	poll(t, c, []string{"app/a"})
}

// A fetch between two polls may deliver a value that neither of them sees.
func TestValueThatFlipsBackBetweenPollsIsReported(t *testing.T) {
	d := newDouble()
	ids := []string{"app/a", "app/b"}
	d.fill(ids)
	d.set("app/a", "v1")
	c := start(t, d, nil)
	c.Fetch(t.Context(), ids)
	poll(t, c, ids)
	d.set("app/a", "v2")
	wantFound(t, fetch(t, c, "app/a"), "v2")
	d.set("app/a", "v1")
	d.log()
	poll(t, c, ids, "app/a")
	if log := d.log(); len(log) != 1 || log[0].status != http.StatusNotModified {
		t.Errorf("the chunk should be as before: %+v", log)
	}
	poll(t, c, ids)
}

// The first delivered value is the baseline: a later fetch for another target
// does not hide the change from the first one.
func TestSecondFetchDoesNotHideAChange(t *testing.T) {
	d := newDouble()
	d.set("app/a", "v1")
	c := start(t, d, nil)
	wantFound(t, fetch(t, c, "app/a"), "v1")
	d.set("app/a", "v2")
	wantFound(t, fetch(t, c, "app/a"), "v2")
	poll(t, c, []string{"app/a"}, "app/a")
}

func TestFetchBeforeItsPollIsNotForgotten(t *testing.T) {
	d := newDouble()
	d.fill([]string{"app/a", "app/new"})
	c := start(t, d, nil)
	poll(t, c, []string{"app/a"})
	fetch(t, c, "app/new")        // a target that is new,
	poll(t, c, []string{"app/a"}) // and a poll whose list is from before
	d.set("app/new", "v2")
	poll(t, c, []string{"app/a", "app/new"}, "app/new")
}

func TestWhatIsNoLongerAskedIsForgotten(t *testing.T) {
	d := newDouble()
	ids := []string{"app/a", "app/b"}
	d.fill(ids)
	c := start(t, d, nil)
	poll(t, c, ids)
	poll(t, c, ids[:1])
	poll(t, c, ids[:1])
	d.set("app/b", "v2")
	poll(t, c, ids) // nobody holds app/b, so there is no change to tell of
}

func TestOneIDThatComesOrGoesLeavesOtherChunksAlone(t *testing.T) {
	d := newDouble()
	ids := names(400)
	d.fill(ids)
	d.fill([]string{"app/v0000a"})
	c := start(t, d, nil)
	poll(t, c, ids)
	batches := count(d.log(), conjur.KindBatch)
	if batches < 2 {
		t.Fatalf("%d batches; the test needs more", batches)
	}
	for _, list := range [][]string{append(slices.Clone(ids), "app/v0000a"), ids, ids[1:]} {
		poll(t, c, list)
		full := 0
		for _, a := range d.log() {
			if a.status == http.StatusOK {
				full++
			}
		}
		if full > 1 {
			t.Errorf("%d of %d chunks were sent again for one id", full, batches)
		}
	}
}
