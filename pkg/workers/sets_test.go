package workers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
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

// shows checks which steps the Secret counts as showing of p/jwt: "oldest newer…", with "?"
// if only its annotation says so, and "-" for none. It says the same after a restart.
func (s *shop) shows(want string) {
	s.t.Helper()
	for _, how := range []string{"", "?"} {
		r := s.set.Records()[0]
		set, ok := r.Status.Sets["p/jwt"]
		got := "-"
		if ok {
			got = ""
			for _, state := range set.States() {
				got += fmt.Sprintf("%d%v ", state.Step, state.Parts)
			}
			if got = strings.TrimSpace(got); set.Claimed {
				got += "?"
			}
		}
		if want := strings.TrimSuffix(want, "?") + how; got != want && want != "-?" && !(how == "?" && got+"?" == want) {
			s.t.Errorf("it counts as showing %q, want %q", got, want)
		}
		if how == "" {
			s.set.Delete(db)
			s.set.Put(r.Spec)
			s.one()
		}
	}
}

// TestASecretShowsTheStepThatEachOfItsKeysHolds, whatever its definition says now, and also
// after a restart.
func TestASecretShowsTheStepThatEachOfItsKeysHolds(t *testing.T) {
	const names = `{{ range versions "jwt" }}{{ .ID }} {{ end }}`
	first := versions.New("").Make("r1", partsOf("key", "a"), false, noon).Promote("r1", noon) // step 2
	second := first.Make("r2", partsOf("key", "b"), false, noon)
	third := second.Promote("r2", noon)
	good := []string{ofCfg, "- jwt: {keys: p/jwt}", templateCfg, names}
	for name, c := range map[string]struct {
		conjurMap string
		before    func(s *shop) // the first delivery
		breaks    func(s *shop) // before the step 3
		want      string        // after the step 3
	}{
		"a broken template": {"x: p/x", nil, func(s *shop) { s.define("x: p/x", templateCfg, "{{ bad") }, "2[cfg]"},
		"a missing ConfigMap": {"x: p/x", nil, func(s *shop) {
			s.text = func(*targets.Target) (string, error) { return "", errors.New("no ConfigMap") }
		}, "2[cfg]"},
		"a broken template beside the keys": {`"*": {keys: p/jwt}`, nil, func(s *shop) { s.define(s.def.Map, templateCfg, "{{ bad") }, "2[cfg] 3[r1.key.primary r2.key]"},
		"a faulty format":                   {"x: p/x", nil, func(s *shop) { s.define("x: p/x", formatCfg, "toml") }, "2[cfg]"},
		"a group without format":            {"x: p/x", nil, func(s *shop) { s.define("x: p/x", templateCfg, "") }, "2[cfg]"},
		"a faulty list":                     {"x: p/x", nil, func(s *shop) { s.define("x: p/x", ofCfg, "- [") }, "2[cfg]"},
		"a faulty entry":                    {`"*": {keys: p/jwt}`, nil, func(s *shop) { s.define(`"*": {keys: [p/jwt]}`) }, "2[r1.key.primary] 3[cfg]"},
		"a faulty entry with a prefix":      {`"k-*": {keys: p/jwt}`, nil, func(s *shop) { s.define(`"k-*": {keys: [p/jwt]}`) }, "2[k-r1.key.primary] 3[cfg]"},
		"a faulty map":                      {`"*": {keys: p/jwt}`, nil, func(s *shop) { s.define("[") }, "2[r1.key.primary] 3[cfg]"},
		"all of it faulty":                  {`"*": {keys: p/jwt}`, nil, func(s *shop) { s.define("[", formatCfg, "toml") }, "2[cfg r1.key.primary]"},
		"an empty map":                      {`"*": {keys: p/jwt}`, nil, func(s *shop) { s.define("", formatCfg, "toml") }, "2[cfg r1.key.primary]"},
		"refused": {`"*": {keys: p/jwt}`, nil, func(s *shop) {
			r := s.set.Records()[0]
			s.set.Put(r.Spec.Refused("left as it is"))
		}, "2[cfg r1.key.primary]"},
		"a configuration with a fault": {`"*": {keys: p/jwt}`, nil, func(s *shop) {
			s.def.Configured = &targets.Target{Faults: []string{"a fault"}}
			s.define(s.def.Map)
		}, "2[cfg r1.key.primary]"},
		"broken, and its key is deleted": {"x: p/x", nil, func(s *shop) {
			s.define("x: p/x", templateCfg, "{{ bad")
			delete(s.data.keys, "cfg")
		}, "-"},
		"all faulty, and a key is deleted": {`"*": {keys: p/jwt}`, nil, func(s *shop) {
			s.define("[", formatCfg, "toml")
			delete(s.data.keys, "cfg")
		}, "2[r1.key.primary]"},
		"broken from the beginning": {"x: p/x", func(s *shop) { s.define("x: p/x", templateCfg, "{{ bad") }, nil, "-"},
		"no longer defined": {"x: p/x", nil, func(s *shop) {
			delete(s.def.Annotations, "conjur.org/"+ofCfg)
			delete(s.def.Annotations, "conjur.org/"+templateCfg)
			s.define("x: p/x")
		}, "-"},
		"another content": {"x: p/x", nil, func(s *shop) { s.define("x: p/x", ofCfg, "- p/x", templateCfg, "x") }, "-"},
		"no fault":        {`"*": {keys: p/jwt}`, nil, func(*shop) {}, "3[cfg r1.key.primary r2.key]"},
		"unknown":         {`"*": {keys: p/jwt}`, nil, func(s *shop) { s.define(s.def.Map + "\ny: p/y"); s.unknown("p/y") }, "2[cfg r1.key.primary]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, c.conjurMap, good...)
			s.give("p/x", "x", "p/jwt", encoded(t, first))
			if c.before != nil {
				c.before(s)
			}
			s.one()
			if c.breaks != nil {
				c.breaks(s)
			}
			s.give("p/jwt", encoded(t, second))
			s.one()
			s.shows(c.want)
			if s.def.Configured = nil; c.want == "-" {
				return
			}
			s.define(c.conjurMap, append(good, formatCfg, "template")...)
			s.text = func(group *targets.Target) (string, error) { return group.Template.Inline, nil }
			s.give("p/y", "y", "p/jwt", encoded(t, third))
			s.one()
			if got := s.set.Records()[0].Status.Sets["p/jwt"]; got.Step != 4 || len(got.Newer) > 0 || got.Claimed {
				t.Errorf("once mended, it shows %+v", got)
			}
		})
	}
}
