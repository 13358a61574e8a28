package records

import (
	"slices"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

// A data key keeps the variable that it has, whatever else would make the same
// key; after a restart that is what was remembered.
func TestADataKeyKeepsItsVariable(t *testing.T) {
	def := func() *targets.Target {
		return &targets.Target{Key: "secret/ns/s", Entries: []targets.Entry{{Alias: "*", Variable: "*", ContentType: targets.ContentText}}, Secret: &targets.Secret{Namespace: "ns", Name: "s"}}
	}
	left := func(t *testing.T, l *Lane, ids ...string) {
		t.Helper()
		got, _ := l.Get("secret/ns/s")
		all := strings.Join(got.Secret.LeftOut, " ")
		if len(got.Secret.LeftOut) != 1 || slices.ContainsFunc(ids, func(id string) bool { return !strings.Contains(all, id) }) {
			t.Errorf("left out %q, want both of %q", got.Secret.LeftOut, ids)
		}
	}
	wants := func(t *testing.T, l *Lane, want string) {
		t.Helper()
		if got := entriesOf(t, l, "secret/ns/s"); got != want {
			t.Errorf("entries %q, want %q", got, want)
		}
	}
	var l Lane
	l.Put(def())
	l.Expand([]string{"p/a"}, nil)
	wants(t, &l, "p.a=p/a ")
	l.Expand([]string{"p.a", "p/a"}, nil)
	wants(t, &l, "p.a=p/a ")
	left(t, &l, "p.a", "p/a")
	l.Put(def())
	wants(t, &l, "p.a=p/a ")
	l.Expand([]string{"p.a"}, nil) // no proof
	wants(t, &l, "p.a=p/a ")
	l.Release("secret/ns/s", "p/a")
	wants(t, &l, "p.a=p.a ")
	l.Expand([]string{"p.a", "p/a"}, nil)
	wants(t, &l, "p.a=p.a ")

	var again Lane
	again.Put(def())
	again.Expand([]string{"p.a", "p/a"}, nil)
	wants(t, &again, "p.a=p.a ") // the first in order, if nothing is remembered
	again.Recall("secret/ns/s", "p/a")
	wants(t, &again, "p.a=p/a ")
	left(t, &again, "p.a", "p/a")
	again.Expand([]string{"p.a", "p/a"}, nil)
	wants(t, &again, "p.a=p/a ")
}
