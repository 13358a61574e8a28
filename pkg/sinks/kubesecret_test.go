package sinks_test

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// Unchanged is not written, by another sink either, and costs one request.
func TestUnchangedSecretIsNotWritten(t *testing.T) {
	k := newKube(t)
	want := map[string]string{"a": "1", "b": "2"}
	target := k.created("s", "", "a", "b")
	k.sync(t, target, want)
	before := k.get(t, "s")
	k.sink = k.newSink(t, sinks.Cluster(t).Config())
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
		n, err := strconv.ParseInt(s.Annotations[sinks.RevisionAnnotation], 10, 64)
		must(t, err)
		_, err = time.Parse(time.RFC3339, s.Annotations[sinks.RevisedAnnotation])
		must(t, err)
		return n
	}
	filled := func() bool {
		s := k.get(t, "s")
		return s.Annotations[sinks.FilledAnnotation] == s.Annotations[sinks.RevisionAnnotation]
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

// Seen tells our own writes from those of others.
func TestSeen(t *testing.T) {
	k := newKube(t)
	target := k.created("s", "", "a")
	expect := func(when string, want bool) {
		t.Helper()
		if got := k.sink.Seen(k.ns, "s") == k.get(t, "s").ResourceVersion; got != want {
			t.Errorf("%s, Seen is %q: %t, want %t", when, k.sink.Seen(k.ns, "s"), got, want)
		}
	}
	if v := k.sink.Seen(k.ns, "s"); v != "" {
		t.Errorf("Seen begins with %q", v)
	}
	k.sync(t, target, map[string]string{"a": "1"})
	expect("created", true)
	k.merge(t, "s", `{"data":{"f":"MQ=="}}`)
	expect("changed by others", false)
	k.read(t, target)
	expect("read", true)
	k.sync(t, target, map[string]string{"a": "2"})
	expect("written", true)
	k.sync(t, target, nil)
	expect("emptied", true)
	must(t, k.secrets.Delete(t.Context(), "s", metav1.DeleteOptions{}))
	k.read(t, target)
	if v := k.sink.Seen(k.ns, "s"); v != "" {
		t.Errorf("deleted, Seen is %q", v)
	}
	k.sync(t, target, map[string]string{"a": "1"})
	k.sink.Forget(k.ns, "s")
	if v := k.sink.Seen(k.ns, "s"); v != "" {
		t.Errorf("forgotten, Seen is %q", v)
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
