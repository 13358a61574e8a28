package main

import (
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/secretsync/syncer/test/proctest"
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

func TestARewriteOfTheSameConfigurationRestartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group("db", "json", "db/password")
	p := w.start()
	w.awaitProvided()
	w.annotate() // the kubelet does so now and then
	w.await("db.json", w.renew("db/password"))
	if lines := p.Lines("Parsing annotations"); len(lines) != 1 {
		t.Errorf("the annotations were parsed %d times", len(lines))
	}
	p.Stop()
}

// TestAChangedFormatTakesTheOldFileAway: what Syncer wrote under the old name
// goes once the new file is there, also where an earlier process wrote it; what
// somebody has altered since, or is another target's now, stays.
func TestAChangedFormatTakesTheOldFileAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"db", "edited", "swapped", "folder", "broken"} {
		w.group(name, "json", name+"/password")
	}
	w.annotations["secret-file-format.folder"] = "directory"
	w.annotations["secret-file-path.folder"] = "old"
	w.annotations["secret-file-path.swapped"] = "one.json"
	p := w.start()
	w.awaitProvided()
	p.Stop()
	p = w.start()
	w.beat()
	eventually(t, "the first pass", func() bool { return len(p.Lines("Rendering target")) >= 5 })
	w.write(w.path("secrets", "edited.json"), "edited")
	eventually(t, "it mended", func() bool { return w.file("edited.json") != "edited" })

	for _, name := range []string{"db", "edited", "broken"} {
		w.annotations["secret-file-format."+name] = "yaml"
	}
	w.annotations["secret-file-path.folder"] = "new"
	w.annotations["secret-file-path.swapped"] = "two.json"
	w.group("heir", "json", "heir/password")
	w.annotations["secret-file-path.heir"] = "one.json"
	w.deny("broken/password")
	w.annotate()
	for name, id := range map[string]string{"db.yaml": "db/password", "edited.yaml": "edited/password", "two.json": "swapped/password", "one.json": "heir/password", "new/password": "folder/password"} {
		w.await(name, w.value[id])
	}
	for _, name := range []string{"db.json", "edited.json", "old/password"} {
		eventually(t, name+" away", func() bool { return !w.exists("secrets", name) })
	}
	eventually(t, "what was revoked away", func() bool { return !w.exists("secrets", "broken.json") })
	if text := w.file("one.json"); !strings.Contains(text, w.value["heir/password"]) {
		t.Errorf("the file that has become another target's holds %q", text)
	}
	p.Stop()
}

// TestALiveChangeKeepsWhatRuns: neither a group nor a setting that only guides
// what runs costs a login or a count.
func TestALiveChangeKeepsWhatRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group("db", "json", "db/password")
	w.annotations["server-address"] = proctest.FreeAddress(t)
	p := w.start()
	w.awaitProvided()
	logins := w.server.Counts().Authentications
	for i, change := range []func(){
		func() { w.group("new", "yaml", "new/password") },
		func() {
			maps.Copy(w.annotations, map[string]string{
				"log-level": "debug", "secrets-refresh-interval": "2s", "health-freshness": "5m", "restore-deleted-files": "never",
			})
		},
		func() {
			maps.Copy(w.annotations, map[string]string{
				"removal-brake": "90%", "removal-confirmations": "3", "removal-grace": "1s", "remove-deleted-secrets-enabled": "false",
				"retry-interval-sec": "2", "exit-on-revoked": "false",
			})
		},
	} {
		change()
		w.annotate()
		eventually(t, "the change taken up", func() bool { return len(p.Lines("what runs takes it up")) == i+1 })
		w.await("db.json", w.renew("db/password"))
	}
	w.await("new.yaml", w.value["new/password"])
	if now := w.server.Counts().Authentications; now != logins {
		t.Errorf("%d logins became %d", logins, now)
	}
	// Two at first, and one for each change; the last is counted after its file is there.
	eventually(t, "five writes counted", func() bool { return w.writes() >= 5 })
	p.Stop()
}

// writes is how many writes the metrics count.
func (w *world) writes() int {
	w.t.Helper()
	resp, err := http.Get("http://" + w.annotations["server-address"] + "/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), `syncer_syncs_total{identity="default",result="written"} `)
	line, _, _ := strings.Cut(after, "\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		w.t.Errorf("the metrics do not count writes: %v", err)
	}
	return n
}
