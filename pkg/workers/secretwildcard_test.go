package workers_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/secretsync/syncer/pkg/workers"
)

const allKeys = "'*': '*'\n"

// list has Conjur list these variables.
func (s *shop) list(ids ...string) { s.set.Expand(ids, nil) }

// keeps expects that the Secret stays as it is for something that is unknown.
func (s *shop) keeps(why string) {
	s.t.Helper()
	r := s.one()
	if failed[*workers.UnknownError](s.t, r.Err, why); r.Wrote {
		s.t.Errorf("result %+v, want no write", r)
	}
}

func TestAllVariablesBecomeDataKeys(t *testing.T) {
	s := newShop(t, allKeys+"mine: p/a", ofCfg, "*", formatCfg, "json")
	s.keeps("the list of variables is not known yet")
	s.give("p/a", "1", "p b", "2")
	s.list("p/a", "p b")
	s.delivers(`cfg={"p b":"2","p/a":"1"}`, "mine=1", "p.a=1", "p.b=2")
	s.rests()
	s.give("p/new", "3")
	s.list("p/a", "p b", "p/new")
	s.delivers(`cfg={"p b":"2","p/a":"1","p/new":"3"}`, "mine=1", "p.a=1", "p.b=2", "p.new=3")
}

// Which of two ids gets a key depends on the ids alone, and the other is told.
func TestACollisionIsDecidedAndTold(t *testing.T) {
	s := newShop(t, allKeys)
	s.give("p/a", "slash", "p.a", "dot", "p a", "space")
	s.list("p/a", "p.a", "p a")
	s.delivers("p.a=space")
	if n := s.logs.FilterMessage("Variables have no data key").Len(); n != 1 {
		t.Errorf("%d lines tell of the others, want one", n)
	}
	s.rests()
	if n := s.logs.FilterMessage("Variables have no data key").Len(); n != 1 {
		t.Errorf("%d lines after a sync without a change", n)
	}
}

func TestAVariableOfAWildcardGoesWhenItIsProvenGone(t *testing.T) {
	s := newShop(t, allKeys+"named: q/n", ofCfg, "*", formatCfg, "json")
	s.give("p/a", "1", "p/b", "2", "q/n", "n")
	s.list("p/a", "p/b")
	s.delivers(`cfg={"p/a":"1","p/b":"2"}`, "named=n", "p.a=1", "p.b=2")
	s.list("p/b") // is no proof
	s.suspect("p/a")
	s.give("p/b", "3")
	s.keeps("p/a")
	s.holds(`cfg={"p/a":"1","p/b":"2"}`, "named=n", "p.a=1", "p.b=2")

	s.gone("p/a")
	r := s.one()
	s.holds(`cfg={"p/b":"3"}`, "named=n", "p.b=3")
	s.did(r, "cfg p.b", "p.a", "")
	if r.Err != nil || !r.Wrote || r.Removed {
		t.Errorf("result %+v, want no error: nothing names the variable", r)
	}
	if n := s.logs.FilterMessage("Removed revoked values").Len(); n != 1 {
		t.Errorf("%d lines tell of the removal, want one", n)
	}
	if got := s.set.Variables(); !slices.Equal(got, []string{"p/b", "q/n"}) {
		t.Errorf("variables %q: what is gone and not listed is no member any more", got)
	}
	s.rests()
	s.gone("q/n")
	r = s.one()
	s.did(r, "", "named", "")
	if revoked := failed[*workers.RevokedError](t, r.Err); !r.Removed || !slices.Equal(revoked.Variables, []string{"q/n"}) {
		t.Errorf("result %+v, want a removal for what is named", r)
	}
}

// A variable without a value holds nothing up that is not there yet.
func TestAKeyOfAWildcardGoesWhateverElseIsUnknown(t *testing.T) {
	s := newShop(t, allKeys+"named: q/n")
	s.give("p/a", "1", "p/b", "2", "q/n", "n", "p/new", "3")
	s.list("p/a", "p/b")
	s.one()
	s.list("p/a", "p/b", "p/new")
	s.gone("p/a")
	s.unknown("q/n")
	r := s.one()
	s.did(r, "", "p.a", "")
	s.holds("named=n", "p.b=2")
	failed[*workers.UnknownError](t, r.Err, "q/n")
	s.give("q/n", "n")
	s.suspect("p/new") // was not written, and so holds nothing up
	s.give("p/b", "4")
	s.delivers("named=n", "p.b=4")
}

// What happens to a variable is no proof for another that has the same key.
func TestARivalWithoutAValueTakesNoKey(t *testing.T) {
	s := newShop(t, allKeys)
	s.give("p/a", "1", "p/b", "1")
	s.list("p/a", "p/b")
	s.one()
	s.suspect("p a")
	s.list("p a", "p/a", "p/b")
	s.give("p/b", "2")
	s.delivers("p.a=1", "p.b=2")
	s.gone("p a")
	s.give("p/b", "3")
	s.delivers("p.a=1", "p.b=3")
	s.give("p a", "new", "p/b", "4")
	s.delivers("p.a=1", "p.b=4") // which stays, also when the other has a value
}

func TestOnlyWhatANameSaysCountsAsARemoval(t *testing.T) {
	s := newShop(t, allKeys+"named: q/n")
	s.give("p/a", "1", "p/b", "2", "q/n", "n")
	s.list("p/a", "p/b")
	s.one()
	s.gone("q/n")
	if r := s.one(); !r.Removed {
		t.Errorf("result %+v, want a removal", r)
	}
	s.gone("p/a")
	r := s.one()
	s.did(r, "", "p.a", "")
	if r.Removed || r.Err == nil {
		t.Errorf("result %+v, want no second removal", r)
	}
}

func TestANewVariableOfAWildcardWithoutAValue(t *testing.T) {
	s := newShop(t, allKeys)
	s.give("p/a", "1")
	s.suspect("p/unset")
	s.list("p/a", "p/unset")
	s.delivers("p.a=1")
	s.unknown("p/unset") // it was out, and stays out
	s.give("p/a", "2")
	s.delivers("p.a=2")
	s.give("p/unset", "now")
	s.delivers("p.a=2", "p.unset=now")
	s.unknown("p/other") // may have a value
	s.list("p/a", "p/unset", "p/other")
	s.give("p/a", "3")
	s.keeps("p/other")
	s.holds("p.a=2", "p.unset=now")
}

// After a restart the Secret itself tells what it holds.
func TestAfterARestartADoubtKeepsASecretOnlyIfItMayConcernIt(t *testing.T) {
	s := newShop(t, allKeys)
	s.give("p/a", "1", "p/b", "1")
	s.list("p/a", "p/b", "p/never")
	s.suspect("p/never")
	s.delivers("p.a=1", "p.b=1")

	s.restart()
	s.give("p/a", "2")
	s.delivers("p.a=2", "p.b=1") // never was not there, and so need not be proven gone
	s.restart()
	s.suspect("p/b")
	s.give("p/a", "3")
	s.keeps("p/b")
	s.holds("p.a=2", "p.b=1")
	s.gone("p/b")
	r := s.one()
	s.did(r, "p.a", "p.b", "")
	s.holds("p.a=3")
}

func TestWhenAllOfAWildcardIsGoneAllKeysGo(t *testing.T) {
	s := newShop(t, allKeys, ofCfg, "*", formatCfg, "json")
	s.give("p/a", "1", "p/b", "1")
	s.list("p/a", "p/b")
	s.one()
	s.list()
	s.gone("p/a")
	s.gone("p/b")
	if r := s.one(); !r.Removed || r.Err == nil {
		t.Errorf("result %+v, want a removal", r)
	}
	s.holds()
	if r := s.one(); r.Wrote || r.Removed {
		t.Errorf("result %+v, want nothing to do", r)
	} else {
		failed[*workers.RevokedError](t, r.Err) // which is still in use
	}
	s.give("p/b", "again")
	s.delivers(`cfg={"p/b":"again"}`, "p.b=again")
}

func TestNothingMatchesTheWildcardOfASecret(t *testing.T) {
	s := newShop(t, "'*': typo/*\nuser: p/user")
	s.give("p/user", "me")
	s.data.keys = map[string]string{"typo.x": "of a list that had it"}
	s.list("p/user")
	r := s.one()
	if r.Err != nil || !r.Wrote {
		t.Errorf("result %+v, want the rest to be delivered", r)
	}
	s.holds("typo.x=of a list that had it", "user=me")
	only := newShop(t, "'*': typo/*")
	only.data.keys = map[string]string{"typo.x": "of a list that had it"}
	only.list("p/user")
	only.keeps("sees no variable")
	only.holds("typo.x=of a list that had it")
}

func TestWithoutRemovalAKeyOfAWildcardStays(t *testing.T) {
	s := newShop(t, allKeys)
	s.syncer.Policy.RemoveRevoked = false
	s.give("p/a", "1", "p/b", "1")
	s.list("p/a", "p/b")
	s.one()
	for range 2 { // before a restart, and after
		s.gone("p/b")
		s.give("p/a", "2")
		if r := s.one(); r.Removed || len(r.Revoked)+len(r.Dropped) > 0 {
			t.Errorf("result %+v, want nothing removed", r)
		}
		s.holds("p.a=2", "p.b=1")
		s.restart()
	}
}

// After a write that failed nobody knows which one is there.
func TestAFailedWriteOfAWildcardIsNoKnowledge(t *testing.T) {
	s := newShop(t, allKeys)
	s.give("p/a", "1", "p/b", "1")
	s.list("p/a", "p/b")
	s.data.fails = errors.New("status 503")
	s.one()
	s.data.fails, s.data.keys = nil, map[string]string{"p.a": "1", "p.b": "1"} // it was made all the same
	s.suspect("p/b")
	s.give("p/a", "2")
	s.keeps("p/b")
	s.holds("p.a=1", "p.b=1")
}
