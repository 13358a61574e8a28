package kubesecrets_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// members applies what is to be remembered, with the data as they are to be.
func (k *kube) members(t *testing.T, target *targets.Target, c sinks.Changes, ids ...string) {
	t.Helper()
	c.Members = append([]string{}, ids...)
	must(t, k.sink.Apply(t.Context(), target, c))
	if got := k.read(t, target).Members; !slices.Equal(got, ids) {
		t.Errorf("remembered are %q, want %q", got, ids)
	}
}

// What is remembered comes and goes with a write of the data, or alone, which is
// no new revision; whatever the rights.
func TestMembersAreKeptWithTheData(t *testing.T) {
	for name, verbs := range map[string][]string{"patch": {"get", "patch"}, "update": {"get", "update"}} {
		t.Run(name, func(t *testing.T) {
			k := newKube(t)
			k.make(t, "s", "", "theirs", "1")
			k.as(t, verbs...)
			target := k.target("s", "a", "x.y")
			k.members(t, target, setAll("a", "1", "x.y", "2"), "b", "x/y", "ü z")
			before := k.get(t, "s")

			same := sinks.Changes{Parts: parts("a", "1", "x.y", "2")}
			k.members(t, target, same, "x/y")
			now := k.get(t, "s")
			if now.Annotations[targets.RevisionAnnotation] != before.Annotations[targets.RevisionAnnotation] {
				t.Error("what changed no data raised the revision")
			}
			k.expectData(t, "s", map[string]string{"theirs": "1", "a": "1", "x.y": "2"})
			k.members(t, target, same, "x/y")
			if k.get(t, "s").ResourceVersion != now.ResourceVersion {
				t.Error("what was remembered already is written again")
			}

			must(t, k.sink.Apply(t.Context(), target, setAll("a", "3", "x.y", "2"))) // says nothing of them
			if got := k.read(t, target).Members; !slices.Equal(got, []string{"x/y"}) {
				t.Errorf("a change that says nothing of them leaves %q", got)
			}
			k.members(t, target, sinks.Changes{Parts: parts("a", "3"), Remove: []string{"x.y"}})
			if s := k.get(t, "s"); s.Annotations[targets.MembersAnnotation] != "" {
				t.Errorf("annotations %q", s.Annotations)
			}
			k.expectData(t, "s", map[string]string{"theirs": "1", "a": "3"})
		})
	}
}

// What others have written there is not ours, and what cannot be read is nothing.
func TestForeignMembersAreNone(t *testing.T) {
	k := newKube(t)
	k.make(t, "s", "", "a", "1")
	target := k.target("s", "a")
	k.members(t, target, setAll("a", "1"), "x")
	packed := k.get(t, "s").Annotations[targets.MembersAnnotation]
	for _, text := range []string{packed, "", "no base64", "H4sIAAAAAAAA"} {
		k.merge(t, "s", `{"metadata":{"annotations":{"`+targets.MembersAnnotation+`":null}}}`)
		k.merge(t, "s", `{"metadata":{"annotations":{"`+targets.MembersAnnotation+`":"`+text+`"}}}`)
		if got := k.read(t, target).Members; got != nil {
			t.Errorf("of %q is remembered %q", text, got)
		}
		k.members(t, target, sinks.Changes{Parts: parts("a", "1")}, "x")
	}
}

// More ids than Kubernetes lets annotations have are refused before anything is
// changed.
func TestTooManyMembersAreRefused(t *testing.T) {
	k := newKube(t)
	k.make(t, "s", "", "a", "1")
	var ids []string
	for range 20_000 {
		ids = append(ids, "app/"+rand.Text())
	}
	slices.Sort(ids)
	c := setAll("a", "2")
	c.Members = ids
	k.refuse(t, k.target("s", "a"), c, "prefix/*")
	k.expectData(t, "s", map[string]string{"a": "1"})
	c.Members = nil
	for i := range 50_000 { // which are easy to pack
		c.Members = append(c.Members, fmt.Sprintf("a/variable/with/the/number/of/its/own/%08d", i))
	}
	k.refuse(t, k.target("s", "a"), c, "prefix/*")
	c.Members = ids[:8000]
	must(t, k.sink.Apply(t.Context(), k.target("s", "a"), c))
}
