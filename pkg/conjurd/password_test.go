package conjurd

import (
	"encoding/base64"
	"testing"
)

func TestPasswordRules(t *testing.T) {
	for p, want := range map[string]bool{
		"SuperSecret12!!": true, "short1A!": false, "nouppercase12!!": false, "NOLOWERCASE12!!": false,
		"NoDigitsAtAll!!": false, "NoSpecials12345": false, "Ünïcode_PWd1": true,
	} {
		if got := isStrong(p); got != want {
			t.Errorf("%q is strong: %t", p, got)
		}
	}
}

// The key of another is for those who may update that role, however they log
// in; everyone else is refused and changes nothing.
// What they cannot see is not there.
func TestKeysOfOthers(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, "- !user eve\n- !user bob\n- !group ops\n- !user carol\n- !grant { role: !group ops, member: !user carol }\n"+
		"- !permit { role: !group ops, privileges: [update], resource: !user bob }\n"+
		"- !permit { role: !user eve, privileges: [read], resource: !user carol }\n")
	for _, c := range []struct {
		login, role string
		status      int
	}{
		{"eve", "user:bob", 404}, {"eve", "user:admin", 404}, {"eve", "user:nobody", 404}, {"eve", "group:ops", 404}, {"carol", "user:admin", 404},
		{"eve", "user:carol", 401}, {"admin", "group:ops", 401},
		{"carol", "user:bob", 200}, {"carol", "dev:user:bob", 200}, {"admin", "user:eve", 200},
	} {
		for _, how := range []string{"token", "basic"} {
			before := map[string]string{"user:bob": apiKey(t, s, "bob"), "user:admin": apiKey(t, s, "admin"), "user:eve": apiKey(t, s, "eve")}
			q := request{method: "PUT", path: "/authn/dev/api_key?role=" + c.role, as: c.login}
			if how == "basic" {
				q.as, q.header = "", basicAuth(c.login, apiKey(t, s, c.login))
			}
			w := send(t, s, q)
			if w.Code != c.status {
				t.Errorf("%s, by %s, for the key of %s: status %d", c.login, how, c.role, w.Code)
			}
			for role, old := range before {
				changed := apiKey(t, s, role[len("user:"):]) != old
				if wanted := c.status == 200 && (c.role == role || c.role == "dev:"+role); changed != wanted {
					t.Errorf("%s, by %s, for the key of %s: that of %s changed: %t", c.login, how, c.role, role, changed)
				}
			}
		}
	}
}

func basicAuth(login, secret string) map[string]string {
	return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(login+":"+secret))}
}
