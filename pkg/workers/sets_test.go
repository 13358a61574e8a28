package workers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/workers"
)

var noon = versions.Entry{At: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}

func partsOf(pairs ...string) map[string]secret.Value {
	m := map[string]secret.Value{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = secret.New([]byte(pairs[i+1]))
	}
	return m
}

func encoded(t *testing.T, d *versions.Document) string {
	t.Helper()
	value, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(value)
}

// TestAKeySetIsDelivered follows a rotation: each step is one change of the whole
// set, and a retired key is no removal.
func TestAKeySetIsDelivered(t *testing.T) {
	s := newShop(t, `"*": {keys: p/jwt}`)
	set := versions.New("").Make("r1", partsOf("private", "a", "public", "A"), false, noon).Promote("r1", noon)
	step := func(next *versions.Document) workers.Result {
		t.Helper()
		set = next
		s.give("p/jwt", encoded(t, set))
		r := s.one()
		if r.Err != nil || r.Removed {
			t.Errorf("at step %d: %+v", set.Step, r)
		}
		return r
	}
	step(set)
	s.holds("r1.private.primary=a", "r1.public.primary=A")
	step(set.Make("r2", partsOf("private", "b", "public", "B"), false, noon))
	s.holds("r1.private.primary=a", "r1.public.primary=A", "r2.private=b", "r2.public=B")
	step(set.Promote("r2", noon))
	s.holds("r1.private=a", "r1.public=A", "r2.private.primary=b", "r2.public.primary=B")
	s.did(step(set.Retire("r1", noon)), "", "", "r1.private r1.public")
	s.holds("r2.private.primary=b", "r2.public.primary=B")
	s.rests()
}

func TestACredentialIsDeliveredWithTheFormerOne(t *testing.T) {
	s := newShop(t, "host: p/host\n\"db-*\": {credential: p/db}\n\"*\": {keys: p/jwt}")
	db := versions.New("").Make("r1", partsOf("username", "a", "password", "1"), false, noon).Promote("r1", noon)
	jwt := versions.New("").Make("r9", partsOf("key", "k"), false, noon).Promote("r9", noon)
	s.give("p/host", "h", "p/db", encoded(t, db), "p/jwt", encoded(t, jwt))
	s.delivers("db-password=1", "db-username=a", "host=h", "r9.key.primary=k")
	db = db.Make("r2", partsOf("username", "b", "password", "2"), true, noon)
	s.give("p/db", encoded(t, db))
	s.rests() // nobody gets a login that was not tried
	db = db.Promote("r2", versions.Entry{At: noon.At.Add(time.Hour)})
	s.give("p/db", encoded(t, db))
	s.delivers("db-password=2", "db-password.old=1", "db-username=b", "db-username.old=a", "host=h", "r9.key.primary=k")
}

func TestASetThatIsBrokenOrWentBackKeepsTheLastState(t *testing.T) {
	const canary = "c4n4ry-value"
	s := newShop(t, "host: p/host\n\"*\": {keys: p/jwt}")
	first := versions.New("").Make("r1", partsOf("key", canary), false, noon).Promote("r1", noon)
	second := first.Make("r2", partsOf("key", "b"), false, noon)
	s.give("p/host", "h", "p/jwt", encoded(t, second))
	s.delivers("host=h", "r1.key.primary="+canary, "r2.key=b")
	for says, value := range map[string]string{
		"it is at step 2, but step 3 was delivered already": encoded(t, first),
		"not JSON":                  canary,
		"another format":            `{"syncerSet":2,"versions":[]}`,
		"no primary":                `{"syncerSet":1,"step":9,"versions":[]}`,
		"2 versions are primary":    strings.Replace(encoded(t, second), `"state":"accepted"`, `"state":"primary"`, 1),
		"version r1: its state is ": strings.Replace(encoded(t, second), `"state":"primary"`, `"state":"first"`, 1),
	} {
		s.give("p/jwt", value)
		r := s.one()
		if says == "another format" {
			says = "format is not known"
		}
		failed[*workers.UnknownError](t, r.Err, `set "p/jwt"`, says)
		if strings.Contains(r.Err.Error(), canary) {
			t.Errorf("the value is in the error: %v", r.Err)
		}
		s.holds("host=h", "r1.key.primary="+canary, "r2.key=b")
	}
	s.give("p/jwt", encoded(t, second.Promote("r2", noon)))
	s.delivers("host=h", "r1.key="+canary, "r2.key.primary=b")
}

func TestASetThatIsGoneTakesItsKeysOnly(t *testing.T) {
	s := newShop(t, "tls.crt: p/host\n\"*\": {keys: p/jwt}")
	set := versions.New("").Make("r1", partsOf("key", "a"), false, noon).Promote("r1", noon)
	s.give("p/host", "h", "p/jwt", encoded(t, set))
	s.delivers("r1.key.primary=a", "tls.crt=h")
	s.unknown("p/host")
	s.gone("p/jwt")
	r := s.one()
	s.did(r, "", "r1.key.primary", "")
	s.holds("tls.crt=h")
	if !r.Removed {
		t.Errorf("result %+v", r)
	}
}

// TestASetThatIsGoneLeavesWhatOthersMayHaveMade: the keys of a set whose state is unknown,
// the key of a faulty entry, and all keys if an entry has no readable key.
func TestASetThatIsGoneLeavesWhatOthersMayHaveMade(t *testing.T) {
	const good = "\"db-*\": {credential: p/db}\n\"*\": {keys: p/jwt}"
	s := newShop(t, good)
	db := versions.New("").Make("r1", partsOf("username", "a", "password", "1"), false, noon).Promote("r1", noon)
	jwt := versions.New("").Make("r9", partsOf("key", "k"), false, noon).Promote("r9", noon)
	s.give("p/db", encoded(t, db), "p/jwt", encoded(t, jwt))
	s.delivers("db-password=1", "db-username=a", "r9.key.primary=k")
	s.unknown("p/db")
	s.gone("p/jwt")
	for _, faulty := range []string{"~: p/db", "r9.key.primary: [p/db]"} {
		s.define(good + "\n" + faulty)
		s.one()
		s.holds("db-password=1", "db-username=a", "r9.key.primary=k")
	}
	s.define(good)
	s.did(s.one(), "", "r9.key.primary", "")
	s.holds("db-password=1", "db-username=a")
}

func TestTwoSetsNeedPrefixes(t *testing.T) {
	s := newShop(t, "key: p/host\n\"*\": {credential: p/db}")
	set := versions.New("").Make("r1", partsOf("key", "a"), false, noon).Promote("r1", noon)
	s.give("p/host", "h", "p/db", encoded(t, set))
	failed[*workers.UnknownError](t, s.one().Err, `["key"] is made by two entries`, `"db-*"`)
	s.holds()
}

func TestAWildcardLeavesSetsOut(t *testing.T) {
	s := newShop(t, `"*": "*"`)
	set := versions.New("").Make("r1", partsOf("key", "a"), false, noon).Promote("r1", noon)
	s.give("jwt", encoded(t, set), "user", "me")
	s.list("jwt", "user")
	r := s.one()
	s.holds("user=me")
	if len(r.Warnings) != 1 || r.Warnings[0].Left != "jwt" || !strings.Contains(r.Warnings[0].Text, "{keys: jwt}") {
		t.Errorf("it warns %+v", r.Warnings)
	}
}
