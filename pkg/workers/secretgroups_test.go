package workers_test

import (
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/workers"
)

// A group stays as it is when its template is broken, but for a value that is
// revoked.
func TestABrokenTemplateKeepsNothingRevoked(t *testing.T) {
	const each = `{{ range .SecretsArray }}{{ .Alias }}={{ .Value }};{{ end }}`
	s := newShop(t, "user: p/b", ofCfg, "*", templateCfg, each)
	s.give("p/a", "1", "p/b", "2")
	s.list("p/a", "p/b")
	s.delivers("cfg=p/a=1;p/b=2;", "user=2")
	s.define("user: p/b", templateCfg, `{{ bad`)
	s.suspect("p/a")
	s.keeps("p/a")
	s.holds("cfg=p/a=1;p/b=2;", "user=2")
	s.gone("p/a")
	r := s.one()
	s.did(r, "", "cfg", "")
	revoked := failed[*workers.RevokedError](t, r.Err)
	failed[*workers.RenderError](t, r.Err)
	if !r.Removed || !slices.Equal(revoked.Variables, []string{"p/a"}) {
		t.Errorf("result %+v", r)
	}
	s.holds("user=2")
	s.define("user: p/b", templateCfg, each)
	s.delivers("cfg=p/b=2;", "user=2")
}

// What was not written for a broken template is not in the group.
func TestWhatABrokenTemplateKeptOutHoldsNothingUp(t *testing.T) {
	const each = `{{ range .SecretsArray }}{{ .Alias }}={{ .Value }};{{ end }}`
	s := newShop(t, "user: p/a", ofCfg, "*", templateCfg, each)
	s.give("p/a", "1", "p/new", "2")
	s.list("p/a")
	s.one()
	s.define("user: p/a", templateCfg, `{{ bad`)
	s.list("p/a", "p/new")
	failed[*workers.RenderError](t, s.one().Err)
	s.define("user: p/a", templateCfg, each)
	s.suspect("p/new")
	s.give("p/a", "3")
	s.delivers("cfg=p/a=3;", "user=3")
}

// After a group fell nothing of it is there, and no doubt keeps it away.
func TestAGroupOfAWildcardComesBack(t *testing.T) {
	s := newShop(t, "user: q/n", ofCfg, "- n: q/n\n- '*'", formatCfg, "json")
	s.give("p/a", "1", "q/n", "n")
	s.list("p/a")
	s.delivers(`cfg={"n":"n","p/a":"1"}`, "user=n")
	s.gone("q/n")
	if r := s.one(); !r.Removed {
		t.Errorf("result %+v, want a removal", r)
	}
	s.holds()
	s.give("q/n", "back")
	s.suspect("p/a")
	s.delivers(`cfg={"n":"back"}`, "user=back")
}

// A doubt about what goes anyway holds nothing up.
func TestADoubtAboutAGroupThatFallsHoldsNothingUp(t *testing.T) {
	s := newShop(t, "user: p/a", ofCfg, "- n: q/n\n- '*'", formatCfg, "json")
	s.give("p/a", "1", "p/b", "1", "q/n", "n")
	s.list("p/a", "p/b")
	s.one()
	s.restart()
	s.suspect("p/b")
	s.gone("q/n")
	s.give("p/a", "2")
	r := s.one()
	s.did(r, "user", "cfg", "")
	s.holds("user=2")
}

func TestAGroupWhoseWildcardMatchesNothingStays(t *testing.T) {
	s := newShop(t, "user: p/user", ofCfg, "*", "conjur-secrets-policy-path.cfg", "typo", formatCfg, "json")
	s.give("p/user", "me")
	s.data.keys = map[string]string{"cfg": "of a list that had it"}
	s.list("p/user")
	r := s.one()
	failed[*workers.UnknownError](t, r.Err, "sees no variable")
	s.did(r, "user", "", "")
	s.holds("cfg=of a list that had it", "user=me")
}

func TestADoubtAboutAGroupOfAWildcard(t *testing.T) {
	s := newShop(t, "user: p/a", ofCfg, "*", formatCfg, "json")
	s.give("p/a", "1", "p/b", "1")
	s.list("p/a", "p/b")
	s.delivers(`cfg={"p/a":"1","p/b":"1"}`, "user=1")
	s.restart()
	s.suspect("p/b")
	s.give("p/a", "2")
	s.keeps("p/b")
	s.holds(`cfg={"p/a":"1","p/b":"1"}`, "user=1")
	s.gone("p/b")
	s.delivers(`cfg={"p/a":"2"}`, "user=2")
}

func TestAValueThatAGroupOfAWildcardCannotHoldIsLeftOut(t *testing.T) {
	s := newShop(t, allKeys, ofCfg, "*", formatCfg, "json")
	s.give("p/a", "1", "p/bin", "\xff")
	s.list("p/a", "p/bin")
	s.delivers(`cfg={"p/a":"1"}`, "p.a=1", "p.bin=\xff")
	if got := s.one().Warnings; len(got) != 1 || got[0].Part != "cfg" || got[0].Left != "p/bin" {
		t.Errorf("warnings %+v", got)
	}
	s.rests()
	s.give("p/a", "\xfe")
	r := s.one()
	failed[*workers.RenderError](t, r.Err, `"p/a"`, `"p/bin"`)
	s.holds(`cfg={"p/a":"1"}`, "p.a=\xfe", "p.bin=\xff")
}
