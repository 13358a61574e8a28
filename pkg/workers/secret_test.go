package workers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/workers"
)

func TestASecretIsDeliveredInAllItsParts(t *testing.T) {
	s := newShop(t, "user: p/user\nkey: {id: p/key, content-type: base64}", ofCfg, "- u: p/user", templateCfg, `u={{ secret "u" }}`,
		"conjur-secrets.env", "- U: p/user\n- P: p/pass", "secret-file-format.env", "dotenv")
	s.give("p/user", "me", "p/key", "AAE=", "p/pass", "secret")
	r := s.one()
	if r.Err != nil || !r.Wrote || r.Removed {
		t.Errorf("result %+v", r)
	}
	s.did(r, "cfg env key user", "", "")
	s.holds("cfg=u=me", "env=U=\"me\"\nP=\"secret\"", "key=\x00\x01", "user=me")
	s.rests()
	if ids := fmt.Sprint(s.values.fetches[0]); ids != "[p/key p/pass p/user]" {
		t.Errorf("fetched %s, want each once and together", ids)
	}
	s.give("p/pass", "other")
	r = s.one()
	s.did(r, "env", "", "")
	s.holds("cfg=u=me", "env=U=\"me\"\nP=\"other\"", "key=\x00\x01", "user=me")
	for _, v := range s.values.handed {
		if v.Len() > 0 {
			t.Error("a value was not wiped")
		}
	}
}

func TestStaleIsTakenOver(t *testing.T) {
	s := newShop(t, "user: p/user")
	s.give("p/user", "me")
	s.data.keys, s.data.stale = map[string]string{"user": "me"}, true
	s.delivers("user=me")
	s.rests()
}

// A variable that never had a value is not revoked, however often Conjur confirms that. The
// message says what it said at first, after a removal it does not.
func TestVariableThatNeverExistedIsNotRevoked(t *testing.T) {
	s := newShop(t, "user: p/user\npass: p/pass")
	never := &variables.GoneError{Variable: "p/pass", Reason: variables.Missing, Observations: 4, NeverFound: true}
	s.give("p/user", "me")
	s.values.set("p/pass", never)
	const first = "is delivered without pass: there is no value in Conjur, or none for this identity, for p/pass; check the ids and the policy"
	for range 2 {
		if r := failed[*workers.RevokedError](t, s.one().Err, first); !r.Never {
			t.Errorf("%v is not marked", r)
		}
	}
	s.holds("user=me")
	s.define("pass: p/pass")
	s.data.keys = map[string]string{}
	s.restart()
	failed[*workers.RevokedError](t, s.one().Err, "secret/shop/db is not delivered: there is no value in Conjur")
	s.define("user: p/user\npass: p/pass")
	s.restart()
	s.data.keys["pass"], s.data.stale = "of an earlier process", true
	for range 2 { // the removal, and then
		failed[*workers.RevokedError](t, s.one().Err, "does not hold pass", "confirmed it 4 times")
	}
	s.holds("user=me")
}

// What is revoked takes its keys and the groups that contain it, and nothing
// else; the rest is brought up to date by the same sync.
func TestRevokedKeysGoAndTheOthersGoOn(t *testing.T) {
	s := newShop(t, "user: p/user\npass: p/pass\nalso: p/pass", ofCfg, "- p: p/pass\n- u: p/user", formatCfg, "json",
		"conjur-secrets.env", "- U: p/user", "secret-file-format.env", "dotenv")
	s.give("p/user", "me", "p/pass", "secret")
	s.one()
	s.gone("p/pass")
	s.give("p/user", "you")
	r := s.one()
	s.holds("env=U=\"you\"", "user=you")
	s.did(r, "env user", "also cfg pass", "")
	revoked := failed[*workers.RevokedError](t, r.Err, "secret/shop/db does not hold also, cfg, pass", "p/pass", "confirmed it 2 times")
	if !r.Wrote || !r.Removed || revoked.Kept || fmt.Sprint(revoked.Variables, revoked.Parts) != "[p/pass] [also cfg pass]" {
		t.Errorf("result %+v", r)
	}
	lines := s.logs.FilterMessage("Removed revoked values").All()
	if len(lines) != 1 {
		t.Fatalf("%d lines tell of the removal, want one", len(lines))
	}
	if got := fmt.Sprint(lines[0].ContextMap()); !strings.Contains(got, "also cfg pass") || !strings.Contains(got, "variables:[p/pass]") || !strings.Contains(got, "confirmed it 2 times") || !strings.Contains(got, string(db)) {
		t.Errorf("the line says %s", got)
	}

	if r := s.one(); r.Wrote || r.Removed || r.Err == nil || s.logs.FilterMessage("Removed revoked values").Len() > 1 {
		t.Errorf("with nothing left to remove the result is %+v", r)
	}
	s.give("p/pass", "secret") // comes back, with its old value
	s.delivers("also=secret", `cfg={"p":"secret","u":"you"}`, "env=U=\"you\"", "pass=secret", "user=you")
}

func TestTheLastKeyOfASecretGoes(t *testing.T) {
	s := newShop(t, "user: p/user")
	s.give("p/user", "me")
	s.one()
	s.gone("p/user")
	if r := s.one(); !r.Removed {
		t.Errorf("result %+v", r)
	}
	s.holds()
}

func TestWithoutRemovalRevokedKeysStayAndTheOthersGoOn(t *testing.T) {
	s := newShop(t, "user: p/user\npass: p/pass", ofCfg, "- p: p/pass", formatCfg, "json")
	s.syncer.Policy.RemoveRevoked = false
	s.give("p/user", "me", "p/pass", "secret")
	s.one()
	s.gone("p/pass")
	s.give("p/user", "you")
	r := s.one()
	s.holds(`cfg={"p":"secret"}`, "pass=secret", "user=you")
	s.did(r, "user", "", "")
	if revoked := failed[*workers.RevokedError](t, r.Err, "removal is switched off"); !revoked.Kept || r.Removed {
		t.Errorf("result %+v", r)
	}
}

func TestOneUnknownVariableKeepsTheWholeSecret(t *testing.T) {
	s := newShop(t, "user: p/user\npass: p/pass", ofCfg, "- p: p/pass", formatCfg, "json")
	s.give("p/user", "me", "p/pass", "secret")
	s.one()
	s.give("p/user", "you")
	for _, doubt := range []func(string){s.unknown, s.suspect} {
		doubt("p/pass")
		reads := s.data.reads
		r := s.one()
		failed[*workers.UnknownError](t, r.Err, "keeps its last state", "p/pass")
		if r.Wrote || s.data.reads != reads {
			t.Errorf("result %+v after %d reads, want none", r, s.data.reads-reads)
		}
		s.holds(`cfg={"p":"secret"}`, "pass=secret", "user=me")
	}
}

// Nothing revoked stays for what another variable's server does.
func TestWhatIsRevokedGoesWhateverElseIsUnknown(t *testing.T) {
	s := newShop(t, "user: p/user\npass: p/pass\nother: p/other", ofCfg, "- p: p/pass\n- u: p/user", formatCfg, "json",
		"conjur-secrets.env", "- U: p/user", "secret-file-format.env", "dotenv")
	s.give("p/user", "me", "p/pass", "secret", "p/other", "1")
	s.one()
	s.gone("p/pass")
	s.unknown("p/user")
	s.give("p/other", "2")
	r := s.one()
	s.holds("env=U=\"me\"", "other=1", "user=me")
	s.did(r, "", "cfg pass", "")
	failed[*workers.UnknownError](t, r.Err)
	failed[*workers.RevokedError](t, r.Err)
	if !r.Removed || workers.Permanent(r.Err, true) {
		t.Errorf("result %+v, want a removal that is tried again for the rest", r)
	}
	s.give("p/user", "you")
	r = s.one()
	s.holds("env=U=\"you\"", "other=2", "user=you")
	s.did(r, "env other user", "", "")
}

func TestAKeyThatLeftTheMapGoes(t *testing.T) {
	s := newShop(t, "user: p/user\npass: p/pass", ofCfg, "- p: p/pass", formatCfg, "json")
	s.give("p/user", "me", "p/pass", "secret")
	s.one()
	s.define("user: p/user")
	delete(s.def.Annotations, "conjur.org/"+ofCfg)
	delete(s.def.Annotations, "conjur.org/"+formatCfg)
	s.define("user: p/user")
	r := s.one()
	s.holds("user=me")
	s.did(r, "", "", "cfg pass")
	if r.Err != nil || !r.Wrote || r.Removed {
		t.Errorf("result %+v, want no removal that somebody has to know of", r)
	}
	s.define("{}")
	s.delivers()
}

// What left the definition is told apart from what is revoked, also when both
// go at once.
func TestARevokedKeyAndOneThatLeftTheMap(t *testing.T) {
	s := newShop(t, "user: p/user\npass: p/pass\nold: p/old")
	s.give("p/user", "me", "p/pass", "secret", "p/old", "1")
	s.one()
	s.define("user: p/user\npass: p/pass")
	s.gone("p/pass")
	r := s.one()
	s.holds("user=me")
	s.did(r, "", "pass", "old")
	if !r.Removed {
		t.Errorf("result %+v, want a removal", r)
	}
}

// A Secret is not read and deleted as a file may be: what is missing in it is
// brought back, whatever is set for files.
func TestKeysOfASecretThatWereDeletedComeBack(t *testing.T) {
	s := newShop(t, "user: p/user")
	s.syncer.Policy.KeepDeleted = true
	s.give("p/user", "me")
	s.one()
	s.data.keys = nil
	s.delivers("user=me")
}

// The brake holds back for the tenant that lost much, and for nobody else.
func TestOnlyTheTenantThatTheBrakeProtectsKeepsItsValue(t *testing.T) {
	s := newShop(t, "user: p/user")
	s.give("p/user", "me")
	s.delivers("user=me")
	answer := variables.Answer{Err: &variables.SuspectError{Variable: "p/user", Needed: 2}, GoneFor: map[string]error{
		"other": &variables.GoneError{Variable: "p/user", Reason: variables.Missing, Observations: 2},
	}}
	s.values.set("p/user", answer)
	failed[*workers.UnknownError](t, s.one().Err)
	s.holds("user=me")
	answer.GoneFor["shop"] = answer.GoneFor["other"]
	s.values.set("p/user", answer)
	failed[*workers.RevokedError](t, s.one().Err)
	s.holds()
}
