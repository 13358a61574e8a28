package main

import (
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/notify"
)

// ticks is after how many polls an unchanged world is believed to be quiet.
const ticks = 6

// quietWorld has five groups of five variables.
func quietWorld(t *testing.T, options ...conjurdtest.Option) *world {
	t.Helper()
	w := newWorld(t, options...)
	for _, g := range []string{"yaml", "json", "dotenv", "bash", "template"} {
		w.Group(g, g, g+"/a", g+"/b", g+"/c", g+"/d", g+"/e")
	}
	w.template("template", `{{ secret "a" }} {{ secret "b" }}`)
	return w
}

// settle waits for the delivery and for one poll after it, which still sends
// values: only its answer has the tag that makes the next ones empty.
func (w *world) settle() {
	w.Helper()
	w.awaitProvided()
	eventually(w, "an answer 304", func() bool { return w.Server.Counts().NotModified > 0 })
}

func TestUnchangedRefreshCostsOneEmptyAnswer(t *testing.T) {
	t.Parallel()
	w := quietWorld(t, conjurdtest.Strict())
	p := w.start()
	w.settle()
	before, said := w.look(), p.Log()
	w.Server.ResetCounts()
	begin := time.Now()
	eventually(t, "more polls", func() bool { return w.Server.Counts().NotModified >= ticks })
	n, took := w.Server.Counts(), time.Since(begin)

	if want := (conjurdtest.Counts{Data: n.Data, NotModified: n.Data}); n != want {
		t.Errorf("unchanged refreshes cost %+v, want only empty answers", n)
	}
	// Jitter brings polls up to a tenth closer together.
	if most := int64(took/(900*time.Millisecond)) + 1; n.Data > most {
		t.Errorf("%d data requests in %v, want one a tick: %d", n.Data, took, most)
	}
	w.untouched(before)
	if now := p.Log(); now != said {
		t.Errorf("unchanged refreshes were logged:\n%s", now[len(said):])
	}
	p.Stop()
}

func TestRestartTouchesNothing(t *testing.T) {
	t.Parallel()
	w := quietWorld(t)
	p := w.start()
	w.settle()
	p.Stop()
	before := w.look()
	for range 2 {
		p := w.start()
		w.beat()
		w.Server.ResetCounts()
		eventually(t, "an answer 304", func() bool { return w.Server.Counts().NotModified > 0 })
		p.Stop()
		w.untouched(before)
	}
}

func TestHeartBeatsWithoutRefresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	delete(w.Annotations, "secrets-refresh-interval")
	w.Group("db", "json", "db/password")
	p := w.start()
	w.awaitProvided()
	w.Server.ResetCounts()
	for range 3 {
		w.beat()
	}
	if n := w.Server.Counts(); n != (conjurdtest.Counts{}) {
		t.Errorf("requests without refresh: %+v", n)
	}
	p.Stop()
}

// TestHeartBeatsInTheDark has a server that takes every byte and gives none.
func TestHeartBeatsInTheDark(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newGate(w)
	w.Group("db", "json", "db/password")
	p := w.start("--grace", "1s")
	w.awaitProvided()
	before := w.look()
	g.swallow()
	for range 5 {
		w.beat()
	}
	w.untouched(before)
	p.Stop()
}

func TestHeartBeatsWhenDarkFromTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newGate(w)
	g.swallow()
	w.Group("db", "json", "db/password")
	p := w.start("--grace", "1s")
	for range 3 {
		w.beat()
	}
	if w.exists("status", notify.ProvidedFile) {
		t.Error("nothing was delivered, but it says so")
	}
	p.Stop()
}
