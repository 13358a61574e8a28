package records_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"weak"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// target makes the file target of a group with the template file group.tpl.
func target(group string, variables ...string) *targets.Target {
	t := &targets.Target{
		Key: targets.FileKey(group), Group: group, Format: targets.FormatTemplate,
		Template: targets.Template{File: group + ".tpl"},
		File:     targets.File{Path: group, Mode: 0o600},
	}
	for i, v := range variables {
		t.Entries = append(t.Entries, targets.Entry{Alias: fmt.Sprint("k", i), Variable: v, ContentType: targets.ContentText})
	}
	return t
}

func TestSetLooksUp(t *testing.T) {
	var s records.Lane
	s.Replace([]*targets.Target{target("b", "x", "y", "x"), target("a", "y", "z")})

	equal(t, s.Keys(), "file/a", "file/b")
	equal(t, s.Variables(), "x", "y", "z")
	equal(t, s.TemplateFiles(), "a.tpl", "b.tpl")
	equal(t, s.ByVariable("x"), "file/b")
	equal(t, s.ByVariable("y"), "file/a", "file/b")
	equal(t, s.ByVariable("z", "y", "nowhere"), "file/a", "file/b")
	equal(t, s.ByVariable("x", "z"), "file/a", "file/b")
	equal(t, s.ByVariable("nowhere"))
	equal(t, s.ByTemplate("b.tpl", "b.tpl"), "file/b")
	if got, ok := s.Get("file/a"); !ok || got.Group != "a" {
		t.Errorf("Get: %v, %v", got, ok)
	}
	if got, ok := s.Get("file/c"); ok {
		t.Errorf("Get finds %v", got)
	}
}

func TestZeroSetIsEmpty(t *testing.T) {
	var s records.Lane
	equal(t, s.Keys())
	equal(t, s.ByVariable("x"))
	if _, ok := s.Get("file/a"); ok {
		t.Error("Get finds a target")
	}
}

func TestReplaceTellsWhatChanged(t *testing.T) {
	var s records.Lane
	equal(t, keysOf(s.Replace([]*targets.Target{target("c", "x"), target("a", "x"), target("b", "x")})), "file/a", "file/b", "file/c")
	equal(t, keysOf(s.Replace([]*targets.Target{target("a", "x"), target("b", "x"), target("c", "x")})))

	mode := target("c", "x")
	mode.File.Mode = 0o640
	equal(t, keysOf(s.Replace([]*targets.Target{target("d", "w"), target("b", "x", "y"), mode})), "file/b", "file/c", "file/d")

	// What vanished is not a change to work on, and is found no more.
	equal(t, keysOf(s.Replace([]*targets.Target{target("d", "w")})))
	equal(t, s.Keys(), "file/d")
	equal(t, s.ByVariable("x", "y"))
	equal(t, s.ByTemplate("b.tpl"))
	equal(t, keysOf(s.Replace([]*targets.Target{target("d", "w"), target("a", "x")})), "file/a")
}

func TestReplaceKeepsTheLastOfOneKey(t *testing.T) {
	var s records.Lane
	equal(t, keysOf(s.Replace([]*targets.Target{target("a", "x"), target("a", "y")})), "file/a")
	equal(t, s.Variables(), "y")
}

// A process serves Secrets that come and go for as long as it lives.
func TestWhatIsForgottenIsLetGo(t *testing.T) {
	var s records.Lane
	put := func() weak.Pointer[targets.Target] {
		made := target("a", "x")
		s.Put(made)
		return weak.Make(made)
	}
	for name, forget := range map[string]func(){
		"deleted":  func() { s.Delete("file/a") },
		"replaced": func() { s.Replace([]*targets.Target{target("b", "x")}) },
	} {
		made := put()
		forget()
		runtime.GC()
		if made.Value() != nil {
			t.Errorf("%s: the target is still in memory", name)
		}
	}
	runtime.KeepAlive(&s)
}

func TestSetServesManyGoroutines(t *testing.T) {
	var s records.Lane
	var readers, writers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				// Both look-ups of one answer come from one state: a key that
				// ByVariable returns is either still there or was replaced since.
				for _, key := range s.ByVariable("x") {
					if got, ok := s.Get(key); ok && got.Key != key {
						t.Errorf("%s gives the target %s", key, got.Key)
						return
					}
				}
				s.Keys()
				s.Variables()
				s.ByTemplate(s.TemplateFiles()...)
			}
		})
	}
	for w := range 2 {
		writers.Go(func() {
			for i := range 200 {
				s.Replace([]*targets.Target{target(fmt.Sprint(w, i), "x"), target("always", "x")})
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	if _, ok := s.Get("file/always"); !ok {
		t.Error("the target of every Replace is missing")
	}
}

// keysOf lists the keys that are to be synced.
func keysOf(changes []records.Change) (keys []targets.Key) {
	for _, c := range changes {
		if !c.Gone {
			keys = append(keys, c.Key)
		}
	}
	return keys
}

func equal[S ~string](t *testing.T, got []S, want ...S) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
