package main

import (
	"strings"
	"testing"
)

func TestAChangedConfigurationTakesEffectWithoutARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	w.Group("old", "json", "old/password")
	p := w.start()
	w.awaitProvided()
	before := w.look()

	// A new group, and one that leaves: what it wrote stays.
	w.Group("new", "yaml", "new/password")
	delete(w.Annotations, "conjur-secrets.old")
	delete(w.Annotations, "secret-file-format.old")
	w.Annotate()
	w.await("new.yaml", w.Value["new/password"])
	w.awaitUpdated()
	for _, file := range []string{"db.json", "old.json"} {
		path := w.Path("secrets", file)
		if now := w.look()[path]; now != before[path] {
			t.Errorf("%s was touched", file)
		}
	}

	w.Renew("old/password") // nobody's business any more
	w.await("db.json", w.Renew("db/password"))
	if strings.Contains(w.file("old.json"), w.Value["old/password"]) {
		t.Error("a group that left the configuration is still kept fresh")
	}
	p.Stop()
}

func TestAnInvalidChangeIsReportedAndTheOldConfigurationStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	p := w.start()
	w.awaitProvided()

	w.Annotations["secret-file-format.db"] = "toml"
	w.Annotations["secrets-refresh-interval"] = "soon"
	w.Annotate()
	eventually(t, "both problems in the log", func() bool {
		return len(p.Lines("secret-file-format.db", "toml")) > 0 && len(p.Lines("secrets-refresh-interval", "soon")) > 0
	})
	w.await("db.json", w.Renew("db/password"))

	w.Annotations["secret-file-format.db"] = "yaml"
	w.Annotations["secrets-refresh-interval"] = "1s"
	w.Annotate()
	w.await("db.yaml", w.Value["db/password"])
	eventually(t, "the file of the former format away", func() bool { return !w.exists("secrets", "db.json") })
	p.Stop()
}

// TestATypingErrorChangesNothing while the process runs: the format of a group
// seems to be gone, and its file stays. Another group goes on to change.
func TestATypingErrorChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Group("db", "json", "db/password")
	w.Group("web", "json", "web/password")
	p := w.start()
	w.awaitProvided()

	delete(w.Annotations, "secret-file-format.db")
	w.Annotations["secret-file-formt.db"] = "json"
	w.Annotate()
	eventually(t, "the error", func() bool {
		return len(p.Lines("ERROR", "conjur.org/secret-file-formt.db", "did you mean conjur.org/secret-file-format.db?")) > 0
	})
	w.Annotations["secret-file-format.web"] = "yaml"
	w.Annotate()
	w.await("web.yaml", w.Value["web/password"])
	w.await("db.json", w.Renew("db/password"))
	if w.exists("secrets", "db.yaml") {
		t.Error("a typing error has moved a file")
	}
	p.Stop()
}
