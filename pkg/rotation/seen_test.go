package rotation

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/proctest"
)

// TestARestartKnowsTheLastStep from its file: after a backup was restored, the set waits
// for a claim.
func TestARestartKnowsTheLastStep(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := filepath.Join(t.TempDir(), "steps.json")
	starts := func() (r *Rotator, h *heard, said *observer.ObservedLogs) {
		seen, err := OpenSeen(path)
		if err != nil {
			t.Fatal(err)
		}
		r, h = s.rotator(s.client, "me", s.keys(nil))
		core, said := observer.New(zap.InfoLevel)
		config := r.config
		config.Log, config.Seen = zap.New(core), seen
		return New(config), h, said
	}
	const cannotKnow = "No target shows which step was delivered last"
	first, _, said := starts()
	stop := run(t, first)
	backup := s.until("a first key", idleWith(""))
	s.command("now", versions.Command{})
	last := s.until("a second key", idleWith(s.primary()))
	stop()
	if n := said.FilterMessageSnippet(cannotKnow).Len(); n != 1 {
		t.Errorf("without a file it says so %d times", n)
	}
	text, err := os.ReadFile(path)
	info, _ := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(text), "parts") || len(text) > 100 {
		t.Errorf("the file is %s: %s: %v", info.Mode(), text, err)
	}

	value, err := backup.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s.Set("jwt", string(value))
	again, heard, said := starts()
	looks, _, _ := starts()
	if report := looks.Look(t.Context())[0]; !strings.Contains(report.WaitsFor, `then "claim" it`) {
		t.Errorf("status says %q", report.WaitsFor)
	}
	stop = run(t, again)
	s.command("now", versions.Command{})
	proctest.Eventually(t, "that it waits for a claim", func() bool { return strings.Contains(heard.reasons(), `then "claim" it`) })
	if doc := s.doc(); doc.Step != backup.Step {
		t.Errorf("it has written step %d", doc.Step)
	}
	if n := said.FilterMessageSnippet(cannotKnow).Len(); n != 0 {
		t.Error("it says that it cannot know")
	}
	if _, err := (Set{Conjur: s.reader, ID: "jwt"}).Withdraw(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	s.command("claim", versions.Command{})
	s.until("it is claimed", func(d *versions.Document) bool { return d.Step > last.Step })
	stop()
}

// TestAFileOfStepsThatCannotBeRead ends the start: nobody knows what was delivered.
func TestAFileOfStepsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "steps.json")
	for _, text := range []string{"", "canary", `{"jwt":"canary"}`, `[]`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenSeen(path); err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestAStepThatCannotBeKeptIsNotTaken, as the next process would not know of it.
func TestAStepThatCannotBeKeptIsNotTaken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := filepath.Join(t.TempDir(), "gone")
	seen, err := OpenSeen(filepath.Join(dir, "steps.json"))
	if err != nil {
		t.Fatal(err)
	}
	r, heard := s.rotator(s.client, "me", s.keys(nil))
	config := r.config
	config.Seen = seen
	run(t, New(config))
	proctest.Eventually(t, "why no step is taken", func() bool { return strings.Contains(heard.reasons(), "steps.json") })
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.until("a first key", idleWith(""))
}

// TestARestoredSetChangesNothingOutside and answers every command but "claim" with no.
func TestARestoredSetChangesNothingOutside(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := &outside{accepts: map[string]string{}}
	first, _ := s.rotator(s.client, "me", s.logins(o))
	stop := run(t, first)
	backup := s.until("a first login", idleWith(""))
	stop()
	o.set(func() { clear(o.accepts) }) // a later version took its place, and it was revoked
	seen := &Seen{path: filepath.Join(t.TempDir(), "steps.json"), steps: map[string]uint64{"jwt": backup.Step + 7}}
	again, heard := s.rotator(s.client, "me", s.logins(o))
	config := again.config
	config.Seen = seen
	run(t, New(config))
	proctest.Eventually(t, "that it waits for a claim", func() bool { return strings.Contains(heard.reasons(), `then "claim" it`) })
	_, err := Set{Conjur: s.reader, ID: "jwt"}.Command(t.Context(), versions.Command{Verb: "now", At: time.Now()}, time.Minute, nil)
	if !errors.Is(err, ErrRejected) || !strings.Contains(err.Error(), `waits for "claim"`) {
		t.Errorf("the command: %v", err)
	}
	o.set(func() {
		if len(o.accepts) > 0 {
			t.Errorf("the outside was changed: %v", o.accepts)
		}
	})
	if doc := s.doc(); doc.Step != backup.Step || strings.Contains(heard.reasons(), "rollback") {
		t.Errorf("it is at step %d:\n%s", doc.Step, heard.reasons())
	}
	if _, err := (Set{Conjur: s.reader, ID: "jwt"}).Command(t.Context(), versions.Command{Verb: "claim", At: time.Now()}, time.Minute, nil); err != nil {
		t.Error(err)
	}
	proctest.Eventually(t, "the login of the claimed set", func() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.accepts) == 1 })
}
