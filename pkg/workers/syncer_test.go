package workers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// answers is a Values with an answer for each variable: a text is its
// value, an error makes it unknown, and a *variables.GoneError makes it gone.
type answers struct {
	mu      sync.Mutex
	answers map[string]any
	fetches [][]string
	hook    func(ctx context.Context) // called during each fetch
	handed  []secret.Value
}

func (v *answers) Fetch(ctx context.Context, ids []string, _ map[string]variables.Answer) map[string]variables.Answer {
	if v.hook != nil {
		v.hook(ctx)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fetches = append(v.fetches, ids)
	answers := map[string]variables.Answer{}
	for _, id := range ids {
		switch a := v.answers[id].(type) {
		case string:
			value := secret.New([]byte(a))
			v.handed = append(v.handed, value)
			answers[id] = variables.Answer{Verdict: variables.Found, Value: value}
		case variables.Answer:
			answers[id] = a
		case *variables.GoneError:
			answers[id] = variables.Answer{Verdict: variables.Gone, Err: a}
		case error:
			answers[id] = variables.Answer{Err: a}
		}
	}
	return answers
}

func (v *answers) set(id string, answer any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answers[id] = answer
}

// fixture is a Syncer over a real folder.
type fixture struct {
	t      *testing.T
	dir    string
	values *answers
	set    records.Lane
	syncer *workers.Syncer
}

// group is a file target "file/<name>" at <name>.json with the variables as
// entries of the same names.
func group(name string, ids ...string) *targets.Target {
	t := &targets.Target{
		Key: targets.FileKey(name), Group: name, Format: targets.FormatJSON,
		File: targets.File{Path: name + ".json", Mode: 0o640},
	}
	for _, id := range ids {
		t.Entries = append(t.Entries, targets.Entry{Alias: id, Variable: id})
	}
	return t
}

func newFixture(t *testing.T, ts ...*targets.Target) *fixture {
	f := &fixture{t: t, dir: t.TempDir(), values: &answers{answers: map[string]any{}}}
	f.set.Replace(ts)
	f.syncer = &workers.Syncer{
		Targets: &f.set, Values: f.values, Templates: inline{}, Sink: sinks.NewFiles(f.dir, nil),
		Policy: workers.Policy{RemoveRevoked: true}, Log: zap.NewNop(),
	}
	return f
}

// forget has nothing known of any target, as in a new process.
func (f *fixture) forget() {
	for _, key := range f.set.Keys() {
		r, ok := f.set.Begin(key)
		if !ok {
			f.t.Fatalf("%s is being worked on", key)
		}
		r.Status = records.Status{}
		f.set.Settle(r)
	}
}

// inline is a Templates for targets with their template in themselves.
type inline struct{}

func (inline) Text(_ context.Context, t *targets.Target) (string, error) {
	return t.Template.Inline, nil
}

func (f *fixture) sync(keys ...targets.Key) map[targets.Key]workers.Result {
	results := map[targets.Key]workers.Result{}
	f.syncer.Sync(f.t.Context(), f.t.Context(), keys, func(r workers.Result) { results[r.Key] = r })
	return results
}

func (f *fixture) assertFile(name, want string) {
	f.t.Helper()
	got, err := os.ReadFile(filepath.Join(f.dir, name))
	if want == "" {
		if !errors.Is(err, os.ErrNotExist) {
			f.t.Errorf("%s is there (%v), want it away", name, err)
		}
		return
	}
	if err != nil || string(got) != want {
		f.t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
	}
}

func TestASyncWritesOnceAndThenFindsNothingToDo(t *testing.T) {
	f := newFixture(t, group("a", "user", "password"))
	f.values.set("user", "u")
	f.values.set("password", "p")
	r := f.sync("file/a")["file/a"]
	if r.Err != nil || !r.Wrote || r.Removed {
		t.Fatalf("the first sync: %+v", r)
	}
	f.assertFile("a.json", `{"user":"u","password":"p"}`)
	before, err := os.Stat(filepath.Join(f.dir, "a.json"))
	if err != nil {
		t.Fatal(err)
	}
	if r := f.sync("file/a")["file/a"]; r.Err != nil || r.Wrote {
		t.Errorf("the second sync: %+v", r)
	}
	f.syncer.Sink = sinks.NewFiles(f.dir, nil) // as after a restart
	if r := f.sync("file/a")["file/a"]; r.Err != nil || r.Wrote {
		t.Errorf("the sync after a restart: %+v", r)
	}
	after, err := os.Stat(filepath.Join(f.dir, "a.json"))
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the file was touched: %v", err)
	}
}

func TestTheVariablesOfSeveralTargetsTravelTogetherOnce(t *testing.T) {
	f := newFixture(t, group("a", "x", "y"), group("b", "y", "z"))
	for _, id := range []string{"x", "y", "z"} {
		f.values.set(id, id)
	}
	f.sync("file/a", "file/b")
	if len(f.values.fetches) != 1 || fmt.Sprint(f.values.fetches[0]) != "[x y z]" {
		t.Errorf("fetches are %v, want one of x, y and z", f.values.fetches)
	}
}

func TestHalfATargetUnknownKeepsItsLastState(t *testing.T) {
	f := newFixture(t, group("a", "user", "password"), group("b", "other"))
	f.values.set("user", "old-user")
	f.values.set("password", "old-password")
	f.values.set("other", "1")
	f.sync("file/a", "file/b")

	f.values.set("user", "new-user")
	f.values.set("password", errors.New("status 502"))
	f.values.set("other", "2")
	results := f.sync("file/a", "file/b")
	f.assertFile("a.json", `{"user":"old-user","password":"old-password"}`)
	f.assertFile("b.json", `{"other":"2"}`) // one target does not stop another
	var unknown *workers.UnknownError
	if err := results["file/a"].Err; !errors.As(err, &unknown) || !strings.Contains(err.Error(), "502") {
		t.Errorf("error is %v, want an UnknownError with the reason", err)
	}
	if results["file/a"].Wrote || results["file/b"].Err != nil {
		t.Errorf("results are %+v", results)
	}
}

func TestAProvenRevocationRemovesTheFileAndOnlyThat(t *testing.T) {
	f := newFixture(t, group("a", "user", "password"), group("b", "user"))
	f.values.set("user", "u")
	f.values.set("password", "p")
	f.sync("file/a", "file/b")

	f.values.set("password", &variables.GoneError{Variable: "password"})
	f.values.set("user", errors.New("status 502")) // whatever the others are
	r := f.sync("file/a", "file/b")["file/a"]
	var revoked *workers.RevokedError
	if !r.Wrote || !r.Removed || !errors.As(r.Err, &revoked) || revoked.Kept || fmt.Sprint(revoked.Variables) != "[password]" {
		t.Errorf("result is %+v", r)
	}
	f.assertFile("a.json", "")
	f.assertFile("b.json", `{"user":"u"}`)

	if r := f.sync("file/a")["file/a"]; r.Wrote || r.Removed || r.Err == nil {
		t.Errorf("with nothing left to remove the result is %+v", r)
	}

	f.values.set("user", "u")
	f.values.set("password", "p") // restored, with its old value
	if r := f.sync("file/a")["file/a"]; !r.Wrote || r.Err != nil {
		t.Errorf("after the restoration the result is %+v", r)
	}
	f.assertFile("a.json", `{"user":"u","password":"p"}`)
}

func TestRemovalCanBeSwitchedOff(t *testing.T) {
	f := newFixture(t, group("a", "x"))
	f.values.set("x", "1")
	f.sync("file/a")
	f.syncer.Policy.RemoveRevoked = false
	f.values.set("x", &variables.GoneError{Variable: "x"})
	r := f.sync("file/a")["file/a"]
	var revoked *workers.RevokedError
	if r.Wrote || r.Removed || !errors.As(r.Err, &revoked) || !revoked.Kept {
		t.Errorf("result is %+v", r)
	}
	f.assertFile("a.json", `{"x":"1"}`)
}

func TestATargetThatLeftTheSetIsForgottenAndLeft(t *testing.T) {
	f := newFixture(t, group("a", "x"))
	f.values.set("x", "1")
	f.sync("file/a")
	f.set.Replace(nil)
	if r := f.sync("file/a")["file/a"]; r.Err != nil || r.Wrote {
		t.Errorf("result is %+v", r)
	}
	f.assertFile("a.json", `{"x":"1"}`)
}

func TestATemplateThatFailsKeepsTheLastResult(t *testing.T) {
	target := group("a", "x")
	target.Format, target.Template.Inline = targets.FormatTemplate, `{{ secret "x" }}`
	f := newFixture(t, target)
	f.values.set("x", "1")
	f.sync("file/a")
	broken := *target
	broken.Template.Inline = `{{ secret "nope" }}`
	f.set.Replace([]*targets.Target{&broken})
	r := f.sync("file/a")["file/a"]
	var render *workers.RenderError
	if r.Wrote || !errors.As(r.Err, &render) || !strings.Contains(r.Err.Error(), "nope") {
		t.Errorf("result is %+v, want a RenderError that names the alias", r)
	}
	f.assertFile("a.json", "1")
}

func TestValuesAreWipedAfterTheSync(t *testing.T) {
	f := newFixture(t, group("a", "x", "y"), group("b", "z"))
	for _, id := range []string{"x", "y", "z"} {
		f.values.set(id, "value of "+id)
	}
	f.sync("file/a", "file/b")
	if len(f.values.handed) != 3 {
		t.Fatalf("%d values were fetched", len(f.values.handed))
	}
	for _, v := range f.values.handed {
		if v.Len() != 0 {
			t.Error("a value was not wiped")
		}
	}
}

func TestAFileThatLeftTheDefinitionOfAFolderIsDropped(t *testing.T) {
	folder := func(ids ...string) *targets.Target {
		t := group("a", ids...)
		t.Format, t.File.Path = targets.FormatDirectory, "a"
		return t
	}
	f := newFixture(t, folder("x", "y"))
	f.values.set("x", "1")
	f.values.set("y", "2")
	f.sync("file/a")
	f.set.Replace([]*targets.Target{folder("x")})
	if r := f.sync("file/a")["file/a"]; len(r.Revoked) > 0 || fmt.Sprint(r.Dropped) != "[y]" || r.Removed {
		t.Errorf("result is %+v, want that y was dropped", r)
	}
	f.values.set("x", &variables.GoneError{Variable: "x"})
	if r := f.sync("file/a")["file/a"]; fmt.Sprint(r.Revoked) != "[x]" || len(r.Dropped) > 0 || !r.Removed {
		t.Errorf("result is %+v, want that x was revoked", r)
	}
}

// The log says where a file is, and of a Secret only its name.
func TestTheLogSaysWhereATargetIs(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	f := newFixture(t, group("a", "x"))
	f.syncer.Log = zap.New(core)
	f.values.set("x", "1")
	f.sync("file/a")
	s := newShop(t, "user: p/user")
	s.give("p/user", "me")
	s.one()
	for _, c := range []struct {
		logs *observer.ObservedLogs
		want map[string]any
	}{
		{logs, map[string]any{"target": "file/a", "path": "a.json"}},
		{s.logs, map[string]any{"target": string(db)}},
	} {
		lines := c.logs.FilterMessage("Target written").All()
		if len(lines) != 1 || !maps.Equal(lines[0].ContextMap(), c.want) {
			t.Errorf("the log says %v, want one line with %v", lines, c.want)
		}
	}
}

// A target that keeps failing is no more than its outcome in the log.
func TestRetriesAreNotLogged(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	f := newFixture(t, group("a", "x"))
	f.syncer.Log = zap.New(core)
	f.values.set("x", "1")
	place := filepath.Join(f.dir, "a.json")
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if f.sync("file/a")["file/a"].Err == nil {
			t.Fatal("a file was written where a folder is")
		}
	}
	if n := logs.FilterMessage("Rendering target").Len(); n != 1 {
		t.Errorf("rendered %d times says the log, want once", n)
	}
	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	f.sync("file/a")
	if n := logs.FilterMessage("Target written").Len(); n != 1 {
		t.Errorf("written %d times says the log, want once", n)
	}
	f.values.set("x", "2")
	f.sync("file/a")
	if n := logs.FilterMessage("Rendering target").Len(); n != 2 {
		t.Errorf("rendered %d times says the log, want twice", n)
	}
}
