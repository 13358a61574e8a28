package workers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// all is a file target as group makes it, with an entry for all variables
// before the others.
func all(name string, ids ...string) *targets.Target {
	t := group(name, ids...)
	t.Entries = append([]targets.Entry{{Alias: "*", Variable: "*"}}, t.Entries...)
	return t
}

// wild is a fixture with the target "file/a" of all variables. What Conjur
// lists is what was listed last.
type wild struct {
	*fixture
	logs *observer.ObservedLogs
}

func newWild(t *testing.T, ts ...*targets.Target) *wild {
	w := &wild{fixture: newFixture(t, append(ts, all("a"))...)}
	w.restart()
	return w
}

// restart forgets what the process knows.
func (w *wild) restart() {
	core, logs := observer.New(zap.WarnLevel)
	w.logs = logs
	before := w.syncer
	w.forget()
	w.syncer = &workers.Syncer{
		Targets: &w.set, Values: w.values, Templates: inline{}, Sink: sinks.NewFiles(w.dir, nil),
		Policy: before.Policy, Log: zap.New(core),
	}
}

func (w *wild) list(ids ...string) { w.set.Expand(ids, nil) }

// one is the result for the target a.
func (w *wild) one() workers.Result { return w.sync("file/a")["file/a"] }

func (w *wild) delivers(content string) {
	w.t.Helper()
	if r := w.one(); r.Err != nil || !r.Wrote || r.Removed {
		w.t.Errorf("result %+v, want a write", r)
	}
	w.assertFile("a.json", content)
}

func (w *wild) rests(content string) {
	w.t.Helper()
	if r := w.one(); r.Err != nil || r.Wrote {
		w.t.Errorf("result %+v, want nothing to do", r)
	}
	w.assertFile("a.json", content)
}

// keeps expects that the target stays as it is for a reason.
func (w *wild) keeps(content, why string) {
	w.t.Helper()
	var unknown *workers.UnknownError
	if r := w.one(); r.Wrote || !errors.As(r.Err, &unknown) || !strings.Contains(r.Err.Error(), why) {
		w.t.Errorf("result %+v, want an UnknownError with %q", r, why)
	}
	w.assertFile("a.json", content)
}

// warned checks the warnings since the last look.
func (w *wild) warned(want ...string) {
	w.t.Helper()
	var got []string
	for _, entry := range w.logs.TakeAll() {
		got = append(got, fmt.Sprint(entry.ContextMap()["why"]))
	}
	for i, text := range got {
		if i < len(want) && strings.Contains(text, want[i]) {
			got[i] = want[i]
		}
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("warnings %q, want %q", got, want)
	}
}

func (w *wild) suspect(id string) { w.values.set(id, &variables.SuspectError{Variable: id, Needed: 2}) }
func (w *wild) gone(id string)    { w.values.set(id, &variables.GoneError{Variable: id}) }

func TestAllVariablesAreDeliveredInOrder(t *testing.T) {
	w := newWild(t)
	for _, id := range []string{"b", "a/z", "a/b", "ä"} {
		w.values.set(id, "value of "+id)
	}
	w.list("b", "ä", "a/z", "a/b")
	w.delivers(`{"a/b":"value of a/b","a/z":"value of a/z","b":"value of b","ä":"value of ä"}`)
	w.rests(`{"a/b":"value of a/b","a/z":"value of a/z","b":"value of b","ä":"value of ä"}`)
	w.warned()
}

// lister is a Lister that is one function.
type lister func() error

func (l lister) List(context.Context) error { return l() }

func TestTheListIsMadeWhenItIsNeeded(t *testing.T) {
	w := newWild(t, group("plain", "x"))
	w.values.set("x", "1")
	w.values.set("y", "2")
	lists, fail := 0, errors.New("status 502")
	w.syncer.Lister = lister(func() error {
		lists++
		w.assertFile("plain.json", `{"x":"1"}`) // does not wait for the list
		if fail == nil {
			w.list("x", "y")
		}
		return fail
	})
	results := w.sync("file/plain", "file/a")
	w.assertFile("a.json", "")
	if err := results["file/a"].Err; err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("without a list: %v", err)
	}
	fail = nil
	w.delivers(`{"x":"1","y":"2"}`)
	w.rests(`{"x":"1","y":"2"}`)
	if lists != 2 {
		t.Errorf("%d lists, want one for each sync without one", lists)
	}
}

func TestWithoutAListNothingIsWritten(t *testing.T) {
	w := newWild(t)
	w.keeps("", "the list of variables is not known yet")
	w.syncer.Lister = lister(func() error { return nil }) // and yet tells nothing
	w.keeps("", "the list of variables is not known yet")
	for _, ids := range w.values.fetches {
		if len(ids) > 0 {
			t.Errorf("fetched %q", ids)
		}
	}
}

func TestNothingMatchesTheWildcard(t *testing.T) {
	w := newWild(t)
	w.set.Replace([]*targets.Target{{
		Key: "file/a", Format: targets.FormatJSON, File: targets.File{Path: "a.json", Mode: 0o640},
		Entries: []targets.Entry{{Alias: "*", Variable: "typo/*"}},
	}})
	w.list("x")
	w.keeps("", "sees no variable")
}

// The variables without a value do not hold up the others, of which the
// application has none yet.
func TestFirstDeliveryLeavesOutWhatHasNoValue(t *testing.T) {
	w := newWild(t)
	w.values.set("x", "1")
	w.suspect("unset")
	w.gone("forbidden")
	w.list("x", "unset", "forbidden")
	w.delivers(`{"x":"1"}`)
	w.warned(`variable "forbidden"`)
	w.gone("unset")
	w.rests(`{"x":"1"}`)
	w.values.set("unset", errors.New("status 502")) // it was out, and stays out
	w.values.set("x", "2")
	w.delivers(`{"x":"2"}`)
	w.warned() // once
	w.values.set("unset", "now set")
	w.delivers(`{"unset":"now set","x":"2"}`)
}

func TestFirstDeliveryWaitsForWhatIsUnknown(t *testing.T) {
	w := newWild(t)
	w.values.set("x", "1")
	w.values.set("y", variables.ErrBudget)
	w.list("x", "y")
	w.keeps("", "refused too many batches")
}

func TestADeliveredVariableStaysUntilItIsProvenGone(t *testing.T) {
	w := newWild(t)
	w.values.set("x", "1")
	w.values.set("y", "1")
	w.list("x", "y")
	w.delivers(`{"x":"1","y":"1"}`)
	for _, doubt := range []error{errors.New("status 502"), &variables.SuspectError{Variable: "x"}} {
		w.values.set("x", doubt)
		w.values.set("y", "2")
		w.keeps(`{"x":"1","y":"1"}`, "")
	}
	w.list("y") // is no proof either
	w.keeps(`{"x":"1","y":"1"}`, "seems to be")
	w.warned()

	w.gone("x")
	w.delivers(`{"y":"2"}`)
	w.warned(`variable "x"`)
	if got := w.set.Variables(); !slices.Equal(got, []string{"y"}) {
		t.Errorf("variables %q: what is gone and not listed is no member any more", got)
	}
	w.values.set("x", "back")
	w.list("x", "y")
	w.delivers(`{"x":"back","y":"2"}`)
}

// A variable that was just made has no value for a while; the others go on.
func TestANewVariableWithoutAValueHoldsNothingUp(t *testing.T) {
	w := newWild(t)
	w.values.set("x", "1")
	w.list("x")
	w.delivers(`{"x":"1"}`)
	w.suspect("new")
	w.list("new", "x")
	w.values.set("x", "2")
	w.delivers(`{"x":"2"}`)
	w.warned(`variable "new"`)
	w.values.set("newer", errors.New("status 502")) // may have a value
	w.list("new", "newer", "x")
	w.values.set("x", "3")
	w.keeps(`{"x":"2"}`, "502")
}

// After a restart it is not known which variables the file holds.
func TestAfterARestartDoubtKeepsWhatIsThere(t *testing.T) {
	w := newWild(t)
	w.values.set("x", "1")
	w.values.set("y", "1")
	w.list("x", "y")
	w.delivers(`{"x":"1","y":"1"}`)

	w.restart()
	w.suspect("y")
	w.keeps(`{"x":"1","y":"1"}`, `"y" seems to be`)
	w.gone("y")
	w.delivers(`{"x":"1"}`)

	w.restart()
	w.suspect("y") // and it shows that the file does not hold it
	w.rests(`{"x":"1"}`)
	w.values.set("x", "2")
	w.delivers(`{"x":"2"}`)
}

func TestWhatANameSaysHasTheRulesOfNames(t *testing.T) {
	w := newWild(t)
	w.set.Replace([]*targets.Target{all("a", "named")})
	w.values.set("x", "1")
	w.suspect("named")
	w.list("named", "x")
	w.keeps("", `file/a is not delivered: there is no value in Conjur, or none for this identity, for named;`)
	w.values.set("named", "n")
	w.delivers(`{"x":"1","named":"n"}`)
	w.suspect("other") // listed, and not in the file
	w.list("named", "other", "x")
	w.gone("named")
	r := w.one()
	var revoked *workers.RevokedError
	if !r.Removed || !errors.As(r.Err, &revoked) || !slices.Equal(revoked.Variables, []string{"named"}) {
		t.Errorf("result %+v, want a removal because of the one that is named", r)
	}
	w.assertFile("a.json", "")
	w.values.set("named", "back")
	w.suspect("x") // of which the removal left nothing
	w.delivers(`{"named":"back"}`)
	w.values.set("x", "1")
	w.delivers(`{"x":"1","named":"back"}`)

	w.restart()
	w.suspect("x")
	w.gone("named")
	if r := w.one(); !r.Removed {
		t.Errorf("result %+v, want a removal whatever else may be in the file", r)
	}
}

func TestWhenAllAreGoneTheFileGoes(t *testing.T) {
	w := newWild(t)
	w.values.set("x", "1")
	w.values.set("y", "1")
	w.list("x", "y")
	w.delivers(`{"x":"1","y":"1"}`)
	w.gone("x")
	w.suspect("y")
	w.keeps(`{"x":"1","y":"1"}`, "")
	w.gone("y")
	if r := w.one(); !r.Removed || r.Err == nil {
		t.Errorf("result %+v, want a removal", r)
	}
	w.assertFile("a.json", "")
	w.values.set("y", "again")
	w.delivers(`{"y":"again"}`)
}

func TestAtFirstNothingCanBeRead(t *testing.T) {
	w := newWild(t)
	w.gone("x")
	w.suspect("y")
	w.list("x", "y")
	w.keeps("", `for this identity, for y;`) // one may turn out to have a value
}

func TestWithoutRemovalADeliveredVariableStays(t *testing.T) {
	w := newWild(t)
	w.syncer.Policy.RemoveRevoked = false
	w.values.set("x", "1")
	w.values.set("y", "1")
	w.gone("never")
	w.list("x", "y", "never")
	w.delivers(`{"x":"1","y":"1"}`)
	w.gone("y")
	w.values.set("x", "2")
	r := w.one()
	var revoked *workers.RevokedError
	if r.Wrote || !errors.As(r.Err, &revoked) || !revoked.Kept || !slices.Equal(revoked.Variables, []string{"y"}) {
		t.Errorf("result %+v, want y kept", r)
	}
	w.assertFile("a.json", `{"x":"1","y":"1"}`)
	w.values.set("y", "2")
	w.suspect("x")
	w.keeps(`{"x":"1","y":"1"}`, `"x" seems to be`)
}

func TestAnIDThatIsNoKeyOfTheFormatIsLeftOut(t *testing.T) {
	w := newWild(t)
	w.values.set(`a"b`, "1")
	w.values.set("x", "1")
	w.list(`a"b`, "x")
	w.delivers(`{"x":"1"}`)
	w.warned("cannot be a key of format json")
	w.rests(`{"x":"1"}`)
	w.warned()
}

// Among all variables may be some that a format cannot hold, such as a keystore.
func TestAValueThatTheFormatCannotHoldIsLeftOut(t *testing.T) {
	w := newWild(t)
	w.values.set("x", "1")
	w.values.set("keystore", "\xfe\xed")
	w.list("keystore", "x")
	w.delivers(`{"x":"1"}`)
	w.warned(`cannot hold the value of alias "keystore"`)
	w.values.set("x", "\xff")
	w.values.set("keystore", "text")
	w.delivers(`{"keystore":"text"}`)
	w.values.set("keystore", "\xff")
	var render *workers.RenderError
	if r := w.one(); r.Wrote || !errors.As(r.Err, &render) {
		t.Errorf("result %+v, want an error when nothing is left", r)
	}
	w.assertFile("a.json", `{"keystore":"text"}`)

	w.set.Replace([]*targets.Target{all("a", "named")})
	w.values.set("x", "1")
	w.values.set("named", "\xff")
	r := w.one()
	if r.Wrote || !errors.As(r.Err, &render) || !strings.Contains(r.Err.Error(), `"named"`) || !strings.Contains(r.Err.Error(), `"keystore"`) {
		t.Errorf("result %+v, want an error about the one that is named, and all others", r)
	}
}

// The outcome says at each sync what the log says once, with what the rendering
// warns of.
func TestTheOutcomeHasTheWarnings(t *testing.T) {
	a := all("a", "named")
	a.Entries[1].ContentType = targets.ContentBase64
	w := newWild(t)
	w.set.Replace([]*targets.Target{a})
	for id, value := range map[string]string{`a"b`: "1", "keystore": "\xfe\xed", "named": "%"} {
		w.values.set(id, value)
	}
	w.list(`a"b`, "keystore", "named")
	for range 2 {
		got := w.one().Warnings
		if len(got) != 3 || got[0].Part != "" || got[0].Left != `a"b` || !strings.HasPrefix(got[0].Text, `variable "a\"b" is left out: its id cannot be a key of format json: `) ||
			got[1].Left != "keystore" || !strings.HasPrefix(got[1].Text, `variable "keystore" is left out: format json cannot hold`) ||
			got[2].Left != "" || !strings.Contains(got[2].Text, `"named"`) {
			t.Errorf("warnings %+v", got)
		}
	}
	if n := w.logs.Filter(func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, `"named"`) }).Len(); n != 1 {
		t.Errorf("%d lines with the warning of the rendering, want 1", n)
	}
}

// A file stays as it is when its template is broken, but not with a value that
// is revoked.
func TestAFileWithABrokenTemplateKeepsNothingRevoked(t *testing.T) {
	w := newWild(t)
	target := all("a")
	target.Format, target.Template.Inline = targets.FormatTemplate, `{{ range .SecretsArray }}{{ .Value }}{{ end }}`
	w.set.Replace([]*targets.Target{target})
	w.values.set("x", "1")
	w.values.set("y", "2")
	w.list("x", "y")
	w.delivers("12")
	broken := *target
	broken.Template.Inline = "{{ bad"
	w.set.Replace([]*targets.Target{&broken})
	if r := w.one(); r.Wrote || r.Err == nil {
		t.Errorf("result %+v, want the last state and an error", r)
	}
	w.assertFile("a.json", "12")
	w.gone("x")
	r := w.one()
	var revoked *workers.RevokedError
	var render *workers.RenderError
	if !r.Removed || !errors.As(r.Err, &revoked) || !errors.As(r.Err, &render) || !slices.Equal(revoked.Variables, []string{"x"}) {
		t.Errorf("result %+v, want a removal for x, and the template's error", r)
	}
	w.assertFile("a.json", "")
	w.set.Replace([]*targets.Target{target})
	w.delivers("2")
}

// After a write that failed nobody knows which one is there.
func TestAFailedWriteIsNoKnowledge(t *testing.T) {
	w := newWild(t)
	w.values.set("x", "1")
	w.list("x")
	w.delivers(`{"x":"1"}`)
	good := w.syncer.Sink
	w.syncer.Sink = failing{good}
	w.values.set("y", "1")
	w.list("x", "y")
	if r := w.one(); r.Err == nil || r.Wrote {
		t.Fatalf("result %+v, want a failure", r)
	}
	w.syncer.Sink = good
	w.suspect("y")
	w.values.set("x", "2")
	w.keeps(`{"x":"1"}`, `"y" seems to be`)
}

type failing struct{ workers.Sink }

func (failing) Apply(context.Context, records.Record, sinks.Changes) (records.Sight, error) {
	return records.Sight{}, errors.New("disk full")
}

func TestTemplatesGoThroughAllVariables(t *testing.T) {
	w := newWild(t)
	target := all("a", "named")
	target.Format = targets.FormatTemplate
	target.Template.Inline = `{{ range .SecretsArray }}{{ .Alias }}={{ .Value }};{{ end }}{{ (index .SecretsMap "p/x").Value }}{{ secret "named" }}`
	w.set.Replace([]*targets.Target{target})
	w.values.set("p/x", "1")
	w.values.set("named", "n")
	w.suspect("q")
	w.list("p/x", "named", "q")
	w.delivers("p/x=1;named=n;1n")
}
