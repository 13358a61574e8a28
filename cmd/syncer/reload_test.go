package main

import (
	"strings"
	"testing"
)

func TestAChangedConfigurationTakesEffectWithoutARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group("db", "json", "db/password")
	w.group("old", "json", "old/password")
	p := w.start()
	w.awaitProvided()
	before := w.look()

	// A new group, and one that leaves: what it wrote stays.
	w.group("new", "yaml", "new/password")
	delete(w.annotations, "conjur-secrets.old")
	delete(w.annotations, "secret-file-format.old")
	w.annotate()
	w.await("new.yaml", w.value["new/password"])
	w.awaitUpdated()
	for _, file := range []string{"db.json", "old.json"} {
		path := w.path("secrets", file)
		if now := w.look()[path]; now != before[path] {
			t.Errorf("%s was touched", file)
		}
	}

	w.renew("old/password") // nobody's business any more
	w.await("db.json", w.renew("db/password"))
	if strings.Contains(w.file("old.json"), w.value["old/password"]) {
		t.Error("a group that left the configuration is still kept fresh")
	}
	p.Stop()
}

func TestAnInvalidChangeIsReportedAndTheOldConfigurationStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group("db", "json", "db/password")
	p := w.start()
	w.awaitProvided()

	w.annotations["secret-file-format.db"] = "toml"
	w.annotations["secrets-refresh-interval"] = "soon"
	w.annotate()
	eventually(t, "both problems in the log", func() bool {
		return len(p.Lines("secret-file-format.db", "toml")) > 0 && len(p.Lines("secrets-refresh-interval", "soon")) > 0
	})
	w.await("db.json", w.renew("db/password"))

	w.annotations["secret-file-format.db"] = "yaml"
	w.annotations["secrets-refresh-interval"] = "1s"
	w.annotate()
	w.await("db.yaml", w.value["db/password"])
	eventually(t, "the file of the former format away", func() bool { return !w.exists("secrets", "db.json") })
	p.Stop()
}

// TestATypingErrorChangesNothing while the process runs: the format of a group
// seems to be gone, and its file stays. Another group goes on to change.
func TestATypingErrorChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group("db", "json", "db/password")
	w.group("web", "json", "web/password")
	p := w.start()
	w.awaitProvided()

	delete(w.annotations, "secret-file-format.db")
	w.annotations["secret-file-formt.db"] = "json"
	w.annotate()
	eventually(t, "the error", func() bool {
		return len(p.Lines("ERROR", "conjur.org/secret-file-formt.db", "did you mean conjur.org/secret-file-format.db?")) > 0
	})
	w.annotations["secret-file-format.web"] = "yaml"
	w.annotate()
	w.await("web.yaml", w.value["web/password"])
	w.await("db.json", w.renew("db/password"))
	if w.exists("secrets", "db.yaml") {
		t.Error("a typing error has moved a file")
	}
	p.Stop()
}
