package kubesecrets_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sinks/sinkstest"
	"github.com/secretsync/syncer/pkg/targets"
)

// Unchanged is not written, by another sink either, and costs one request.
func TestUnchangedSecretIsNotWritten(t *testing.T) {
	k := newKube(t)
	want := map[string]string{"a": "1", "b": "2"}
	target := k.created("s", "", "a", "b")
	k.sync(t, target, want)
	before := k.get(t, "s")
	k.sink = k.newSink(t, cluster.Config())
	if calls := k.wire.since(func() { k.sync(t, target, want) }); !slices.Equal(calls, []string{"GET"}) {
		t.Errorf("the calls are %q", calls)
	}
	// Not even when it is applied, because the answer was lost.
	c := setAll("a", "1", "b", "2")
	if calls := k.wire.since(func() { must(t, k.sink.Apply(t.Context(), target, c)) }); !slices.Equal(calls, []string{"GET"}) {
		t.Errorf("applied again, the calls are %q", calls)
	}
	if after := k.get(t, "s"); after.ResourceVersion != before.ResourceVersion {
		t.Error("it was written")
	}
}

// Apply leaves alone the keys that its changes do not mention.
func TestUnmentionedKeysStay(t *testing.T) {
	k := newKube(t)
	target := k.created("s", "", "a", "b")
	k.sync(t, target, map[string]string{"a": "1", "b": "2"})
	must(t, k.sink.Apply(t.Context(), target, setAll("a", "new")))
	k.expectData(t, "s", map[string]string{"a": "new", "b": "2"})
	if got := owners(t, k.get(t, "s"), "b"); !slices.Equal(got, []string{"syncer Apply"}) {
		t.Errorf("b is owned by %q", got)
	}
	must(t, k.sink.Apply(t.Context(), target, sinks.Changes{Remove: []string{"a", "nosuch"}}))
	k.expectData(t, "s", map[string]string{"b": "2"})

	k.wire.before(func() { k.merge(t, "s", `{"data":{"b":"`+encode("3")+`"}}`) })
	must(t, k.sink.Apply(t.Context(), target, setAll("a", "newer")))
	k.expectData(t, "s", map[string]string{"a": "newer", "b": "3"}) // not the value read before
	must(t, k.sink.Apply(t.Context(), target, sinks.Changes{Remove: []string{"a"}}))

	k.merge(t, "s", `{"data":{"theirs":"MQ=="}}`)
	must(t, k.sink.Apply(t.Context(), target, sinks.Changes{Remove: []string{"b", "theirs", targets.ConjurMapKey}}))
	k.expectData(t, "s", map[string]string{"theirs": "1"})
}

// What somebody else wrote over our keys is drift: it is read, and mended.
func TestDrift(t *testing.T) {
	k := newKube(t)
	target, want := k.created("s", "", "a", "b"), map[string]string{"a": "1", "b": "2"}
	k.sync(t, target, want)
	for _, patch := range []string{`{"data":{"a":"eA=="}}`, `{"data":{"a":null}}`, `{"data":null}`, `{"data":{"a":"MQ=="}}`} {
		k.merge(t, "s", patch)
		k.sync(t, target, want)
		k.expectData(t, "s", want)
	}
}

// A group of a Secret makes the key that is its name.
func TestGroupIsAKey(t *testing.T) {
	k := newKube(t)
	k.make(t, "s", "", "app.yaml", "old")
	target := k.target("s", "a")
	target.Secret.Groups = []*targets.Target{{Group: "app.yaml"}}
	target.Entries = append(target.Entries, targets.Entry{Alias: "*", Variable: "*"})
	if state := k.read(t, target); !state.Stale || len(state.Parts) != 1 {
		t.Errorf("there are %d parts, stale %t", len(state.Parts), state.Stale)
	}
}

// The revision tells each change of the data and nothing else.
func TestRevision(t *testing.T) {
	k := newKube(t)
	target := k.created("s", "", "a")
	revision := func() int64 {
		s := k.get(t, "s")
		n, err := strconv.ParseInt(s.Annotations[targets.RevisionAnnotation], 10, 64)
		must(t, err)
		_, err = time.Parse(time.RFC3339, s.Annotations[targets.RevisedAnnotation])
		must(t, err)
		return n
	}
	filled := func() bool {
		s := k.get(t, "s")
		return s.Annotations[targets.FilledAnnotation] == s.Annotations[targets.RevisionAnnotation]
	}
	last := int64(0)
	for _, value := range []string{"1", "2", "3"} {
		k.sync(t, target, map[string]string{"a": value})
		if n := revision(); n <= last || filled() != (value == "1") {
			t.Errorf("the revision was %d and is %d, filled: %t", last, n, filled())
		}
		last = revision()
	}
	k.sync(t, target, nil)
	if n := revision(); n <= last {
		t.Errorf("removed, the revision was %d and is %d", last, n)
	}
	last = revision()
	must(t, k.secrets.Delete(t.Context(), "s", metav1.DeleteOptions{}))
	k.make(t, "s", "", "a", "4")
	k.sync(t, target, map[string]string{"a": "5"})
	if n := revision(); n <= last || filled() {
		t.Errorf("made anew with a key of ours, the revision was %d and is %d, filled: %t", last, n, filled())
	}
	last = revision()
	k.merge(t, "s", `{"data":{"a":"eA=="}}`)
	k.merge(t, "s", `{"data":{"a":"`+encode("5")+`"}}`)
	k.sync(t, target, map[string]string{"a": "5"})
	if n := revision(); n != last {
		t.Errorf("taken over, the revision was %d and is %d", last, n)
	}
}

// A Secret that is deleted and filled anew has the revision that it had, if its
// data are what they were, and another, which is not a first one, if not: those
// who use it hold the former data.
func TestRevisionOfWhatIsMadeAnew(t *testing.T) {
	k := newKube(t)
	target := k.target("s", "a", "b")
	anew := func(content map[string]string) map[string]string {
		k.make(t, "s", "", "f", "foreign")
		k.sync(t, target, content)
		annotations := k.get(t, "s").Annotations
		must(t, k.secrets.Delete(t.Context(), "s", metav1.DeleteOptions{}))
		k.forget("s")
		return annotations
	}
	one, other := map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "1", "b": "3"}
	first := anew(one)
	if first[targets.FilledAnnotation] != first[targets.RevisionAnnotation] || len(first) != 3 {
		t.Errorf("filled for the first time, it has %v", first)
	}
	if again := anew(one); !maps.Equal(again, first) {
		t.Errorf("filled with the same, it has %v, before %v", again, first)
	}
	second := anew(other)
	if second[targets.RevisionAnnotation] <= first[targets.RevisionAnnotation] || second[targets.FilledAnnotation] != "" {
		t.Errorf("filled with other data, it has %v, before %v", second, first)
	}
	if again := anew(other); !maps.Equal(again, second) {
		t.Errorf("filled with the same, it has %v, before %v", again, second)
	}
	if third := anew(one); third[targets.RevisionAnnotation] <= second[targets.RevisionAnnotation] || third[targets.FilledAnnotation] != "" {
		t.Errorf("filled with what it held earlier, it has %v, before %v", third, second)
	}

	// Another process knows it from having read it.
	k.make(t, "s", "", "f", "foreign")
	k.sync(t, target, one)
	last := k.get(t, "s").Annotations
	k.sink = k.newSink(t, cluster.Config())
	k.read(t, target)
	must(t, k.secrets.Delete(t.Context(), "s", metav1.DeleteOptions{}))
	if again := anew(one); !maps.Equal(again, last) {
		t.Errorf("filled with the same by another process, it has %v, before %v", again, last)
	}
	if now := anew(other); now[targets.RevisionAnnotation] <= last[targets.RevisionAnnotation] || now[targets.FilledAnnotation] != "" {
		t.Errorf("filled with other data by another process, it has %v, before %v", now, last)
	}
}

// A write of the data says which workloads need a restart for it.
func TestWritesSayWhatMustBeRestarted(t *testing.T) {
	k := newKube(t)
	target := k.target("s", "a")
	k.make(t, "s", "", "f", "foreign")
	var revisions []string
	write := func(value string, named ...string) {
		t.Helper()
		target.Secret.Restart = named
		k.sync(t, target, map[string]string{"a": value})
		revisions = append(revisions, k.get(t, "s").Annotations[targets.RevisionAnnotation])
	}
	assert := func(want targets.RestartMemos) {
		t.Helper()
		if got := targets.ParseRestartMemos(k.get(t, "s").Annotations[targets.RestartsAnnotation]); !maps.Equal(got, want) {
			t.Errorf("the memos are %v, want %v; the revisions were %q", got, want, revisions)
		}
	}
	write("1", "deployment/web")
	assert(targets.RestartMemos{}) // nobody can have used it before
	write("2", "deployment/web")
	pending := targets.RestartMemos{"deployment/web": {Revision: revisions[0]}}
	assert(pending)
	write("2", "deployment/web", "deployment/new") // named without a change of the data
	assert(pending)
	write("3", "deployment/web", "deployment/new")
	pending["deployment/new"] = targets.RestartMemo{Revision: revisions[1]}
	assert(pending)

	k.read(t, target)
	must(t, k.secrets.Delete(t.Context(), "s", metav1.DeleteOptions{}))
	k.make(t, "s", "", "f", "foreign")
	k.forget("s")
	write("3", "deployment/web", "deployment/new") // the same data: what was pending is pending
	assert(pending)

	write("4", "deployment/web")
	pending["deployment/new"] = targets.RestartMemo{Revision: revisions[len(revisions)-1]} // no longer named
	assert(pending)
}

// The version in the status tells our own writes from those of others.
func TestNews(t *testing.T) {
	k := newKube(t)
	target := k.created("s", "", "a")
	expect := func(when string, want bool) {
		t.Helper()
		if got := k.news(k.get(t, "s")); got != want {
			t.Errorf("%s: news %t, want %t", when, got, want)
		}
	}
	k.make(t, "s", "", "f", "1")
	k.sink.Set.Lane("").Put(target)
	expect("made", true)
	k.sync(t, target, map[string]string{"a": "1"})
	expect("filled", false)
	k.merge(t, "s", `{"data":{"f":"MQ=="}}`)
	k.merge(t, "s", `{"data":{"f":"Mg=="}}`)
	expect("changed by others", true)
	k.read(t, target)
	expect("read", false)
	k.sync(t, target, map[string]string{"a": "2"})
	expect("written", false)
	k.sync(t, target, nil)
	expect("emptied", false)
	before := k.get(t, "s")
	k.forget("s")
	k.sink.Set.Lane("").Put(target)
	expect("forgotten", true)
	k.read(t, target)
	must(t, k.secrets.Delete(t.Context(), "s", metav1.DeleteOptions{}))
	k.read(t, target)
	if !k.news(before) {
		t.Error("read as deleted: no news")
	}
}

// An event about our own write that comes before its answer is no news, and one
// about another client's that comes before it is, as soon as that is clear.
func TestNewsDuringAWrite(t *testing.T) {
	k := newKube(t)
	target := k.target("s", "a")
	k.make(t, "s", "", "f", "1")
	for _, c := range []struct {
		what  string
		after func() // what others do after the write, before its answer
		lost  bool   // the answer
		want  int
	}{
		{what: "alone"},
		{"then others", func() { k.merge(t, "s", `{"data":{"f":"Mg=="}}`) }, false, 1},
		{"alone again", nil, false, 0},
		{"an answer that is lost", nil, true, 1},
	} {
		k.sink.Drifted = nil
		k.wire.hook = func(_ int, r *http.Request, next http.RoundTripper) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if r.Method != http.MethodPatch {
				return resp, err
			}
			must(t, err)
			if c.after != nil {
				c.after()
			}
			if k.news(k.get(t, "s")) {
				t.Errorf("%s: news while the write is under way", c.what)
			}
			if c.lost {
				return nil, errors.Join(errors.New("connection lost"), resp.Body.Close())
			}
			return resp, nil
		}
		if _, err := k.trySync(t.Context(), target, map[string]string{"a": c.what}); (err != nil) != c.lost {
			t.Errorf("%s: %v", c.what, err)
		}
		k.wire.hook = nil
		if len(k.sink.Drifted) != c.want || c.want > 0 && k.sink.Drifted[0] != target.Key {
			t.Errorf("%s: k.sink.Drifted %q", c.what, k.sink.Drifted)
		}
		k.read(t, target)
	}
}

// Every request has a deadline.
func TestDeadline(t *testing.T) {
	k := newKube(t)
	k.makeForeign(t, "1", "2", "other", nil)
	k.wire.hook = func(n int, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if _, ok := r.Context().Deadline(); !ok {
			t.Errorf("request %d, %s, has no deadline", n, r.Method)
		}
		return next.RoundTrip(r)
	}
	if calls := k.wire.since(func() { k.sync(t, k.target("s", "a", "b"), map[string]string{"a": "3"}) }); len(calls) != 4 {
		t.Errorf("the calls are %q", calls)
	}
}

func TestConformance(t *testing.T) {
	sinkstest.Run(t, func(t *testing.T) sinkstest.Fixture {
		k := newKube(t)
		return sinkstest.Fixture{
			Sink:    k.sink.Sink,
			Target:  k.created("a", "", "password", "url", "user"),
			Names:   []string{"password", "url", "user"},
			Version: func() string { return k.get(t, "a").ResourceVersion },
		}
	})
}
