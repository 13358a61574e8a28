package rotation

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

// TestAnotherConfigurationsSetIsNeitherReplacedNorCopied by a process that rotates,
// whoever looked with "rotate check" before. Nothing is written, one line says why, and
// other sets go on.
func TestAnotherConfigurationsSetIsNeitherReplacedNorCopied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(*Plan)
		says []string
	}{
		"publish": {
			func(s *Plan) {
				s.Publish = map[string]render.Published{"other": {Text: "key"}, "other/control": {Text: "key"}, "unset": {Text: "key"}, "unset/control": {Text: "key"}, "url": {Text: "key"}}
			},
			[]string{`"other" holds a set of versions`, `"other/control" holds the commands of a set`, `"unset/control" holds the commands of a set`},
		},
		"publish a view": {
			func(s *Plan) { s.Publish = map[string]render.Published{"other": {Parts: []string{"key"}}} },
			[]string{`"other" holds a set of versions`},
		},
		"adopt": {
			func(s *Plan) { s.Adopt = map[string]string{"key": "other"} },
			[]string{`"other" holds a set of versions; adopt another`},
		},
	} {
		for server, options := range servers {
			t.Run(name+" "+server, func(t *testing.T) {
				s := newSite(t, options...)
				s.Policy(`
- !variable other
- !variable other/control
- !variable unset
- !variable unset/control
- !variable third
- !variable third/control
- !permit { role: !host rotates, privileges: [read, execute, update], resources: [!variable other, !variable other/control, !variable unset, !variable unset/control, !variable third, !variable third/control] }
`)
				named := func(id string) Plan {
					set := s.keys(nil)
					set.ID = id
					return set
				}
				elsewhere, _ := s.rotator(s.client, "them", named("other"))
				if err := elsewhere.Once(t.Context()); err != nil {
					t.Fatal(err)
				}
				held, err := Set{Conjur: s.reader, ID: "other"}.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				s.Set("unset", string(encoded(t, held.Document))) // its control variable has no value yet

				mine := s.keys(nil)
				c.set(&mine)
				r, heard := s.rotator(s.client, "me", mine, named("third"))
				core, logged := observer.New(zap.InfoLevel)
				r.config.Log = zap.New(core)
				r = New(r.config)
				for range 2 {
					if err := r.Once(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for _, id := range []string{"other", "other/control"} {
					if numbers, _ := s.reader.Versions(t.Context(), id); len(numbers) != written[id] {
						t.Errorf("%s was written %d times", id, len(numbers))
					}
				}
				for _, id := range []string{"jwt", "url", "unset/control"} {
					if numbers, _ := s.reader.Versions(t.Context(), id); len(numbers) != 0 {
						t.Errorf("%s was written", id)
					}
				}
				if !heard.has("third", EventPromoted) {
					t.Error("another set does not go on")
				}
				if lines := logged.FilterMessage(EventWaiting).FilterField(zap.String("set", "jwt")).All(); len(lines) != 1 {
					t.Errorf("%d lines: %v", len(lines), lines)
				}
				for _, report := range append(r.Reports(), r.Look(t.Context())...) {
					for _, want := range c.says {
						if report.Set == "jwt" && !strings.Contains(report.WaitsFor, want) {
							t.Errorf("the status does not say %q: %+v", want, report)
						}
					}
				}
			})
		}
	}
}

// written is how often another configuration has written its variables.
var written = map[string]int{"other": 2, "other/control": 1}

// TestWhatBecameASetLaterIsNotReplaced: a set that published to a variable before leaves
// it alone from the moment at which it holds a set.
func TestWhatBecameASetLaterIsNotReplaced(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		s := newSite(t)
		published := func() Plan {
			set := s.keys(nil)
			set.Publish = map[string]render.Published{"url": {Text: "key"}}
			return set
		}
		r, _ := s.rotator(s.client, "me", published())
		if err := r.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		held, err := Set{Conjur: s.reader, ID: "jwt"}.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Set("url", string(encoded(t, held.Document)))
		if restarted {
			r, _ = s.rotator(s.client, "me", published())
		}
		r.sets["jwt"].unmended.Store(true)
		r.sets["jwt"].commands.arrived.Store(true)
		s.command("now", versions.Command{})
		if err := r.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if numbers, _ := s.reader.Versions(t.Context(), "url"); len(numbers) != 2 {
			t.Errorf("restarted %v: url was written: %v", restarted, numbers)
		}
		if doc := s.doc(); len(doc.Versions) != 1 {
			t.Errorf("restarted %v: the set has %d versions", restarted, len(doc.Versions))
		}
	}
}

// TestACommandIsObeyedThoughNothingIsPublished because a variable became a set.
func TestACommandIsObeyedThoughNothingIsPublished(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	set := s.keys(nil)
	set.Publish = map[string]render.Published{"jwt-public": {Parts: []string{"key"}}}
	r, _ := s.rotator(s.client, "me", set)
	if err := r.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	foreign := versions.New("them")
	foreign.Identity = "ANOTHER"
	s.Set("jwt-public", string(encoded(t, foreign)))
	before, _ := s.reader.Versions(t.Context(), "jwt-public")
	run(t, r)
	if _, err := (Set{Conjur: s.reader, ID: "jwt"}).Command(t.Context(), versions.Command{Verb: "pause", At: time.Now()}, time.Minute, nil); err != nil {
		t.Error(err)
	}
	if after, _ := s.reader.Versions(t.Context(), "jwt-public"); len(after) != len(before) {
		t.Error("the other set was replaced")
	}
}
