package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// mistyped adds a group of n variables that do not exist.
func (w *world) mistyped(n int) {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "- v%d: typo/v%d\n", i, i)
	}
	w.Annotations["conjur-secrets.typo"] = list.String()
}

// TestMistypedIDsAreNamed by a sidecar that has delivered nothing of them: the
// log says which were not found, and not that something is kept or held back.
func TestMistypedIDsAreNamed(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]conjurdtest.Option{"own": nil, "genuine": {conjurdtest.Strict()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options...)
			w.Group("db", "json", "db/password")
			w.mistyped(10)
			p := w.start()
			w.await("db.json", w.Value["db/password"])
			eventually(t, "the ids in the log", func() bool {
				return len(p.Lines("file/typo is not delivered", "typo/v0, typo/v1", "typo/v9")) > 0
			})
			polls := w.Server.Counts().Data
			eventually(t, "several polls", func() bool { return w.Server.Counts().Data > polls+10 })
			p.Stop()
			for _, wrong := range []string{"keeps its last state", "held back"} {
				if lines := p.Lines(wrong); len(lines) > 0 {
					t.Errorf("nothing was delivered, and the log says: %s", lines[0])
				}
			}
		})
	}
}

// TestAnInitReportsMistypedIDsAfterItsRetries, without waiting for a proof: there
// is nothing to remove.
func TestAnInitReportsMistypedIDsAfterItsRetries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.oneShot("init", 1)
	w.Annotations["removal-grace"] = "1h"
	w.Group("db", "json", "db/password")
	w.mistyped(2)
	p := w.start()
	p.Exit(1)
	if len(p.Lines("not delivered: file/typo", "typo/v0, typo/v1")) == 0 {
		t.Errorf("the log does not name the ids:\n%s", p.Log())
	}
	w.await("db.json", w.Value["db/password"])
}

// TestMostMissingAtARestartIsHeldBack: files of an earlier process are there.
func TestMostMissingAtARestartIsHeldBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/a", "db/b", "db/c", "db/d")
	p := w.start()
	w.awaitProvided()
	p.Stop()
	for _, id := range []string{"db/a", "db/b", "db/c", "db/d"} {
		w.Deny(id)
	}
	p = w.start()
	eventually(t, "the hold", func() bool { return len(p.Lines("Removal is held back")) > 0 })
	if len(p.Lines("file/db keeps its last state")) == 0 || !w.exists("secrets", "db.json") {
		t.Error("the file is not there, or the log does not say that it stays")
	}
	p.Stop()
}
