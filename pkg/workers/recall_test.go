package workers_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// A list that is short when the process starts is no proof either: what the file
// holds stays until each of it is proven to be gone.
func TestShortListAtAStart(t *testing.T) {
	for _, format := range []targets.Format{targets.FormatJSON, targets.FormatYAML, targets.FormatJavaProperties} {
		t.Run(string(format), func(t *testing.T) {
			target := all("a")
			target.Format = format
			w := newWild(t)
			w.set.Replace([]*targets.Target{target})
			ids := []string{"a/b", "a/ö :=#!x", "c,d", "e"}
			for _, id := range ids {
				w.values.set(id, "value of "+id)
			}
			w.list(ids...)
			w.one()
			before := w.file("a.json")

			w.restart()
			w.set = records.Lane{}
			w.set.Replace([]*targets.Target{target})
			w.list("e")
			w.rests(before)
			w.rests(before)

			w.values.set("a/b", "new")
			if r := w.one(); r.Err != nil || !r.Wrote {
				t.Errorf("a recalled variable does not follow: %+v", r)
			}
			w.values.set("a/b", "value of a/b")
			w.one()
			w.assertFile("a.json", before)

			w.restart()
			w.set = records.Lane{}
			w.set.Replace([]*targets.Target{target})
			w.list("e")
			w.suspect("c,d")
			w.keeps(before, "c,d")
			w.gone("c,d")
			if r := w.one(); r.Err != nil || !r.Wrote || r.Removed || w.file("a.json") == before {
				t.Errorf("%+v", r)
			}
			after := w.file("a.json")
			w.rests(after)
			if all, _ := w.set.Get("file/a"); len(all.Entries) != 3 {
				t.Errorf("entries %v, want those that are not gone; %s", all.Entries, after)
			}
		})
	}
}

// What stands in a file under names that no variable can have, or that an entry
// has, is not asked for.
func TestForeignNamesAreNotRecalled(t *testing.T) {
	w := newWild(t)
	if err := os.WriteFile(filepath.Join(w.dir, "a.json"), []byte(`{"":"1","..":"2","a\tb":"3","e":"4"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.values.set("e", "5")
	w.list("e")
	w.delivers(`{"e":"5"}`)
}

func (w *wild) file(name string) string {
	w.t.Helper()
	content, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(content)
}

// A target that left the set for a moment, and was not synced meanwhile, has
// lost what was listed before; its content has not.
func TestShortListAfterATargetWasAway(t *testing.T) {
	s := newShop(t, allKeys)
	s.give("p/a", "1", "p/b", "2")
	s.list("p/a", "p/b")
	s.delivers("p.a=1", "p.b=2")
	s.set.Delete(db)
	s.define(allKeys)
	s.list("p/b")
	s.rests()
	s.holds("p.a=1", "p.b=2")
	s.gone("p/a")
	if r := s.one(); r.Err != nil || !r.Wrote {
		t.Errorf("result %+v", r)
	}
	s.holds("p.b=2")
}
