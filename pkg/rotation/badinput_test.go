package rotation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/proctest"
)

// TestBadSetsAreLeftAlone and reported.
func TestBadSetsAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	version := func(id, state string) string {
		return fmt.Sprintf(`{"id":%q,"state":%q,"parts":{"key":"Y2FuYXJ5"}}`, id, state)
	}
	set := func(all ...string) string {
		return `{"syncerSet":1,"step":3,"owner":"me","versions":[` + strings.Join(all, ",") + `]}`
	}
	var many []string
	for i := range versions.MaxVersions + 1 {
		many = append(many, version(fmt.Sprintf("r%d", i), "retiring"))
	}
	bad := map[string]string{
		"an unknown format": `{"syncerSet":2}`,
		"two primaries":     set(version("r1", "primary"), version("r2", "primary")),
		"no primary":        `{"syncerSet":1,"step":3,"owner":"me","versions":[{"id":"r1","state":"retiring","promoted":"2026-11-22T00:00:00Z","parts":{"key":"Y2FuYXJ5"}}]}`,
		"no file name":      set(version("../r1", "primary")),
		"17 versions":       set(many...),
		"65 KiB":            `{"syncerSet":1,"pad":"` + strings.Repeat("canary", 11<<10) + `"}`,
		"no JSON":           "canary",
		"a plain value":     `"canary"`,
	}
	var sets []Plan
	for what := range bad {
		rotated := s.keys(nil)
		rotated.ID = strings.ReplaceAll(what, " ", "-")
		s.Policy(fmt.Sprintf("- !variable %[1]s\n- !variable %[1]s/control\n- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable %[1]s, !variable %[1]s/control] }\n", rotated.ID))
		s.Set(rotated.ID, bad[what])
		sets = append(sets, rotated)
	}
	r, heard := s.rotator(s.client, "me", sets...)
	r.config.Retry = time.Millisecond
	run(t, r)
	checker, _ := s.rotator(s.client, "me", sets...)
	problems := checker.Check(t.Context())
	for what, value := range bad {
		id := strings.ReplaceAll(what, " ", "-")
		proctest.Eventually(t, "word of "+what, func() bool { return heard.has(id, EventFailed) })
		if is := s.reader.Variable(t.Context(), id, "").Found[id]; string(is.Bytes()) != value {
			t.Errorf("%s was changed", what)
		}
		if !strings.Contains(heard.reasons(), "failed "+id+": read") {
			t.Errorf("nobody counts what fails with %s", what)
		}
		if report := r.sets[id].report.Load(); report == nil || report.WaitsFor == "" {
			t.Errorf("status does not report %s", what)
		}
		if len(problems[id]) == 0 {
			t.Errorf("check does not report %s", what)
		}
	}
	if strings.Contains(heard.reasons(), "canary") || strings.Contains(heard.reasons(), "Y2FuYXJ5") {
		t.Error("an Event has a byte of a value")
	}
}

// TestOddSetsAreExplained by status and check, and are not changed.
func TestOddSetsAreExplained(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	odd := map[string]struct{ owner, since, says string }{
		"of-nobody":      {"", "2026-11-22T00:00:00Z", `nobody rotates the set; to rotate it here, "claim" it`},
		"of-another":     {"you", "2026-11-22T00:00:00Z", `the set is "you"'s; to take it over, "claim" it`},
		"of-another-day": {"me", "2999-11-22T00:00:00Z", "version r1 has a time in the future, 2999-11-22T00:00:00Z"},
	}
	var sets []Plan
	value := func(owner, since string) string {
		return fmt.Sprintf(`{"syncerSet":1,"step":3,"owner":%q,"versions":[{"id":"r1","state":"primary","since":%q,"promoted":%q,"parts":{"key":"Y2FuYXJ5"}}]}`, owner, since, since)
	}
	for id, c := range odd {
		rotated := s.keys(nil)
		rotated.ID = id
		s.Policy(fmt.Sprintf("- !variable %[1]s\n- !variable %[1]s/control\n- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable %[1]s, !variable %[1]s/control] }\n", id))
		s.Set(id, value(c.owner, c.since))
		sets = append(sets, rotated)
	}
	looker, _ := s.rotator(s.client, "me", sets...)
	for _, report := range looker.Look(t.Context()) {
		if !strings.Contains(report.WaitsFor, odd[report.Set].says) {
			t.Errorf("status of %s says %q", report.Set, report.WaitsFor)
		}
	}
	problems := looker.Check(t.Context())
	r, _ := s.rotator(s.client, "me", sets...)
	run(t, r)
	for id, c := range odd {
		if !strings.Contains(strings.Join(problems[id], "\n"), c.says) {
			t.Errorf("check of %s says %q", id, problems[id])
		}
		proctest.Eventually(t, "the reason of "+id, func() bool {
			report := r.sets[id].report.Load()
			return report != nil && strings.Contains(report.WaitsFor, c.says)
		})
		if is := s.reader.Variable(t.Context(), id, "").Found[id]; string(is.Bytes()) != value(c.owner, c.since) {
			t.Errorf("%s was changed", id)
		}
	}
}

// TestCheckKnowsWhatVariablesHold: a set and the commands of one are neither published
// to nor adopted, whoever rotates that set; nor is a plain value an authority.
func TestCheckKnowsWhatVariablesHold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Policy(`
- !variable other
- !variable other/control
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable other, !variable other/control] }
`)
	other := s.keys(nil)
	other.ID = "other"
	elsewhere, _ := s.rotator(s.client, "them", other)
	if err := elsewhere.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	mine := s.keys(nil)
	mine.Publish = map[string]render.Published{"other": {Text: "key"}, "other/control": {Text: "key"}, "url": {Text: "key"}, "jwt-public": {Parts: []string{"key"}}}
	mine.Adopt = map[string]string{"a": "other", "b": "other/control"}
	mine.Generate = generate.Config{X509: &generate.X509{CA: "other"}}
	s.Set("url", noCommand) // as people write for nothing
	s.Set("jwt-public", `{"syncerSet":1,"step":3,"versions":[]}`)
	r, _ := s.rotator(s.client, "me", mine)
	found := strings.Join(r.Check(t.Context())["jwt"], "\n")
	for _, want := range []string{
		`"other" holds a set of versions, which publishing`, `"other/control" holds the commands of a set, which publishing`,
		`"other" holds a set of versions; adopt another`, `"other/control" holds the commands of a set; adopt another`,
		`the primary of "other" has no parts crt and private`,
	} {
		if !strings.Contains(found, want) {
			t.Errorf("nothing says %s", want)
		}
	}
	if strings.Contains(found, `"url" holds`) || strings.Contains(found, `"jwt-public" holds`) {
		t.Error("what may be published to is reported")
	}
	if t.Failed() {
		t.Log(found)
	}
}

// TestAStartSaysWhatItCannotKnow without targets, for each set.
func TestAStartSaysWhatItCannotKnow(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, _ := s.rotator(s.client, "me", s.keys(nil))
	core, logged := observer.New(zap.InfoLevel)
	r.config.Log = zap.New(core)
	if err := r.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := logged.FilterMessageSnippet("No target shows which step was delivered last").All()
	if len(found) != 1 || fmt.Sprint(found[0].ContextMap()["sets"]) != "[jwt]" {
		t.Errorf("it says %+v", found)
	}
}

// TestASetWithoutVersionsBegins, whoever has emptied it.
func TestASetWithoutVersionsBegins(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.Set("jwt", `{"syncerSet":1,"step":3,"owner":"me","versions":[]}`)
	r, _ := s.rotator(s.client, "me", s.keys(nil))
	run(t, r)
	if doc := s.until("the set begins", idleWith("")); doc.Step <= 3 {
		t.Errorf("the step went back to %d", doc.Step)
	}
}

// TestACommandIsObeyedOnce, however often it is sent, and not when it is old, too
// early or nobody's.
func TestACommandIsObeyedOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, heard := s.rotator(s.client, "me", s.keys(nil))
	stop := run(t, r)
	first, _ := s.until("the set begins", idleWith("")).Primary()
	s.command("now", versions.Command{})
	sent := string(s.reader.Variable(t.Context(), "jwt/control", "").Found["jwt/control"].Bytes())
	second, _ := s.until("a second key", idleWith(first.ID)).Primary()

	s.Set("jwt/control", `{"id":"1","at":"2020-01-01T00:00:00Z","verb":"now"}`)
	s.Set("jwt/control", `{"id":"2","at":"2999-01-01T00:00:00Z","verb":"now"}`)
	proctest.Eventually(t, "word of a command that is too early", func() bool {
		return strings.Contains(heard.reasons(), `the command in "jwt/control" is ignored: its time, 2999-01-01T00:00:00Z, is in the future; check the clocks, and send it again`)
	})
	s.Set("jwt/control", "canary")
	proctest.Eventually(t, "word of what is no command", func() bool { return strings.Contains(heard.reasons(), "the value is not a command") })
	s.Set("jwt/control", sent)
	stop()
	again, _ := s.rotator(s.client, "me", s.keys(nil)) // which remembers nothing
	for range 3 {
		if err := again.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if now, _ := s.doc().Primary(); now.ID != second.ID || s.doc().Stage() != "idle" {
		t.Errorf("the replayed command was obeyed: %v", s.doc().Log)
	}
	if strings.Contains(heard.reasons(), "canary") {
		t.Error("an Event has what is no command")
	}
}

// TestTheBudgetBarsAVersion beyond so many in an hour.
func TestTheBudgetBarsAVersion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, _ := s.rotator(s.client, "me", s.keys(nil))
	r.startLimiter.perHour = 1
	run(t, r)
	first, _ := s.until("the set begins", idleWith("")).Primary()
	s.command("now", versions.Command{})
	second, _ := s.until("a second key", idleWith(first.ID)).Primary()
	s.command("now", versions.Command{})
	proctest.Eventually(t, "why there is no third", func() bool {
		report := r.sets["jwt"].report.Load()
		return strings.Contains(report.WaitsFor, "rotation.perHour is 1, and that many versions were begun within an hour")
	})
	if now, _ := s.doc().Primary(); now.ID != second.ID {
		t.Errorf("the primary is %s", now.ID)
	}
}
