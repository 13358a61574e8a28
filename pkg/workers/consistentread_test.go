package workers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// pieces is a Values that answers for each variable by a request of its own, in
// all fetches before the one that is called whole.
type pieces struct {
	*answers
	whole   int
	earlier []map[string]variables.Answer // of each fetch
	between func(fetch int)               // called between the first variable and the others
}

func (p *pieces) Fetch(ctx context.Context, ids []string, earlier map[string]variables.Answer) map[string]variables.Answer {
	p.earlier = append(p.earlier, earlier)
	n := len(p.fetches) + 1
	if n >= p.whole {
		return p.answers.Fetch(ctx, ids, nil)
	}
	answers := p.answers.Fetch(ctx, ids[:1], nil)
	if p.between != nil {
		p.between(n)
	}
	p.fetches = p.fetches[:n-1] // it is one
	for id, a := range p.answers.Fetch(ctx, ids[1:], nil) {
		a.Request = 1 + len(answers)
		answers[id] = a
	}
	p.fetches[n-1] = ids
	return answers
}

func inPieces(t *testing.T, whole int, between func(f *fixture, fetch int)) (*fixture, *pieces) {
	f := newFixture(t, group("db", "password", "user"), group("one", "other"))
	for _, id := range []string{"other", "password", "user"} {
		f.values.set(id, "old "+id)
	}
	p := &pieces{answers: f.values, whole: whole}
	p.between = func(n int) { between(f, n) }
	f.syncer.Values = p
	return f, p
}

// rotate sets the user and the password at one moment.
func (f *fixture) rotate(to string) {
	f.values.set("password", to+" password")
	f.values.set("user", to+" user")
}

func TestARotationBetweenTwoPiecesOfABatchIsDeliveredWhole(t *testing.T) {
	f, p := inPieces(t, 2, func(f *fixture, _ int) { f.rotate("new") })
	r := f.sync("file/db")["file/db"]
	if r.Err != nil || !r.Wrote || len(p.fetches) != 2 {
		t.Errorf("after %d fetches: %+v", len(p.fetches), r)
	}
	f.assertFile("db.json", `{"password":"new password","user":"new user"}`)
}

func TestWhatComesInPiecesIsWrittenIfItHasNotChanged(t *testing.T) {
	f, p := inPieces(t, 100, func(*fixture, int) {})
	if r := f.sync("file/db")["file/db"]; r.Err != nil || !r.Wrote || len(p.fetches) != 2 {
		t.Errorf("after %d fetches: %+v", len(p.fetches), r)
	}
	if p.earlier[0] != nil || p.earlier[1]["user"].Verdict != variables.Found {
		t.Error("the second reading does not have the answers of the first")
	}
	f.assertFile("db.json", `{"password":"old password","user":"old user"}`)
	for _, v := range f.values.handed {
		if v.Len() != 0 {
			t.Error("a value was not wiped")
		}
	}
}

func TestWhatChangesWhileItComesInPiecesIsNotWritten(t *testing.T) {
	f, _ := inPieces(t, 100, func(f *fixture, n int) {
		if n == 2 {
			f.rotate("new")
		}
	})
	results := f.sync("file/db", "file/one")
	var unknown *workers.UnknownError
	if r := results["file/db"]; !errors.As(r.Err, &unknown) || r.Wrote || workers.Permanent(r.Err, true) {
		t.Errorf("%+v, want that it is not known", r)
	}
	f.assertFile("db.json", "")
	f.assertFile("one.json", `{"other":"old other"}`)
	if r := f.sync("file/db")["file/db"]; r.Err != nil {
		t.Error(r.Err)
	}
	f.assertFile("db.json", `{"password":"new password","user":"new user"}`)
}

// What another target came apart for does not change what came whole.
func TestOnlyWhatCameInPiecesIsReadAgain(t *testing.T) {
	f, p := inPieces(t, 100, func(*fixture, int) {})
	f.sync("file/one")
	if len(p.fetches) != 1 {
		t.Errorf("fetches are %v, want one", p.fetches)
	}
	f.sync("file/one", "file/db")
	if last := p.fetches[len(p.fetches)-1]; len(p.fetches) != 3 || len(last) != 2 {
		t.Errorf("fetches are %v, want two more, the last without what is one piece", p.fetches)
	}
}

// … nor what is not to be written, nor all variables that there are: among many
// some change all the time.
func TestWhatIsUnknownAndWhatHoldsAllIsNotReadAgain(t *testing.T) {
	f, p := inPieces(t, 100, func(*fixture, int) {})
	three, all := group("three", "other", "password", "user"), group("all", "other", "password")
	all.Expanded = map[string]bool{"other": true, "password": true}
	f.set.Replace([]*targets.Target{three, all})
	f.values.set("user", errors.New("status 502"))
	f.sync("file/three", "file/all")
	if len(p.fetches) != 1 {
		t.Errorf("fetches are %v, want one", p.fetches)
	}
	f.assertFile("all.json", `{"other":"old other","password":"old password"}`)
}

// TestAWildcardExemptsNoNamedEntries of the same Secret from the second reading.
func TestAWildcardExemptsNoNamedEntries(t *testing.T) {
	for name, annotations := range map[string][]string{
		"in the map":              {ofCfg, "*", formatCfg, "json"},
		"in a group":              {ofCfg, "- password\n- user", formatCfg, "json", "conjur-secrets.all", "*", "secret-file-format.all", "json"},
		"in a group with the *":   {ofCfg, "- password\n- user\n- '*'", formatCfg, "json"},
		"and one without a value": {ofCfg, "*", formatCfg, "json"},
	} {
		t.Run(name, func(t *testing.T) {
			conjurMap := "password: password\nuser: user"
			if name != "in the map" && name != "and one without a value" {
				conjurMap = "{}"
			}
			s := newShop(t, conjurMap, annotations...)
			s.rotate("old")
			s.give("z/other", "o")
			s.list("password", "user", "z/other")
			if name == "and one without a value" {
				s.gone("z/other")
			}
			p := &pieces{answers: s.values, whole: 2, between: func(int) { s.rotate("new") }}
			s.syncer.Values = p
			if r := s.one(); r.Err != nil || !r.Wrote {
				t.Errorf("after %d fetches: %+v", len(p.fetches), r)
			}
			for key, content := range s.data.keys {
				if strings.Contains(content, "old") {
					t.Errorf("%s has %s", key, content)
				}
			}
		})
	}
}
