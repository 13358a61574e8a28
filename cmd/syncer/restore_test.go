package main

import (
	"os"
	"testing"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/test/proctest"
)

// delete deletes a file below the secrets folder, as an application does that
// has read it.
func (w *world) delete(name string) {
	w.Helper()
	if err := os.Remove(w.Path("secrets", name)); err != nil {
		w.Fatal(err)
	}
}

// request asks for what is missing, and waits until that is taken up.
func (w *world) request() {
	w.Helper()
	w.write(w.Path("status", notify.RequestedFile), "")
	eventually(w, "the request taken up", func() bool { return !w.exists("status", notify.RequestedFile) })
}

// deleteAndAwait deletes the file of db, and waits until it is left away.
func (w *world) deleteAndAwait(p *proctest.Process) {
	w.Helper()
	before := left(p)
	w.delete("db.json")
	w.awaitLeft(p, before)
}

// left is how often the file of db was left away.
func left(p *proctest.Process) int { return len(p.Lines("Not restoring", "file/db")) }

// awaitLeft waits until it was left away more often.
func (w *world) awaitLeft(p *proctest.Process, before int) {
	w.Helper()
	eventually(w, "the deleted file left away", func() bool { return left(p) > before })
}

func TestDeletedFilesStayAwayUntilTheyChangeOrAreRequested(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	w.Group("web", "json", "web/password")
	w.Annotations["restore-deleted-files"] = "never"
	p := w.start()
	w.awaitProvided()
	w.delete("web.json")
	w.deleteAndAwait(p)

	w.Renew("db/password")
	w.await("db.json", w.Value["db/password"])
	w.awaitUpdated()
	w.deleteAndAwait(p)

	w.request()
	w.await("db.json", w.Value["db/password"])
	w.await("web.json", w.Value["web/password"])
	w.beat()
	if w.exists("status", notify.UpdatedFile) {
		t.Error("the application is told of what it has asked for")
	}
	w.deleteAndAwait(p)

	// Another configuration changes nothing about it.
	w.Group("new", "json", "new/password")
	w.Annotate()
	w.await("new.json", w.Value["new/password"])
	w.beat()
	if w.exists("secrets", "db.json") {
		t.Error("the file is back for a change of another")
	}

	// Another process cannot know whether it has missed a change.
	p.Stop()
	p = w.start()
	w.await("db.json", w.Value["db/password"])
	w.awaitUpdated()
	p.Stop()
}
