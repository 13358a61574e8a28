package conjurd

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestPasswordRules(t *testing.T) {
	for p, want := range map[string]bool{
		"SuperSecret12!!": true, "short1A!": false, "nouppercase12!!": false, "NOLOWERCASE12!!": false,
		"NoDigitsAtAll!!": false, "NoSpecials12345": false, "Ünïcode_PWd1": true,
		"ABcdefghij1": false, "ABcdefghij1!": true, "AAcdefghijk1!": true, // lengths
		"AB" + strings.Repeat("c", 123) + "1!": true, "AB" + strings.Repeat("c", 124) + "1!": true, "AB" + strings.Repeat("c", 125) + "1!": false,
		"Abcdefghij1!": false, "ABCDEFGHIJk1!": false, "ABCDEFGHIjk1!": true, // letters of each case
	} {
		if got := isStrong(p); got != want {
			t.Errorf("%q is strong: %t", p, got)
		}
	}
}

// The key of another role is for those who may update that role, and by a token only.
// Everyone else is refused and changes nothing. Basic authentication is for the own
// key only.
func TestKeysOfOthers(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, `
- !user eve
- !user bob
- !user carol
- !user dora
- !group ops
- !layer lay
- !policy pol
- !host machine
- !grant { role: !group ops, member: !user carol }
- !permit { role: !group ops, privileges: [update], resources: [ !user bob, !layer lay, !policy pol, !host machine ] }
- !permit { role: !user eve, privileges: [read], resources: [ !user carol, !layer lay, !host machine ] }
- !permit { role: !user dora, privileges: [read, update], resources: [ !layer lay, !user bob ] }
- !permit { role: !user dora, privileges: [execute], resource: !user carol }
`)
	for _, c := range []struct {
		login, role  string
		token, basic int // statuses
	}{
		{"eve", "user:bob", 404, 401}, {"eve", "user:admin", 404, 401}, {"eve", "group:ops", 404, 401}, {"carol", "user:admin", 404, 401},
		{"eve", "user:nobody", 404, 404}, {"eve", "other:user:bob", 404, 404}, {"eve", "bob", 422, 422}, {"eve", "", 422, 422},
		{"eve", "user:carol", 403, 401}, {"eve", "layer:lay", 403, 401}, {"eve", "host:machine", 403, 401}, {"dora", "user:carol", 403, 401},
		{"carol", "layer:lay", 405, 401}, {"carol", "policy:pol", 405, 401}, {"dora", "layer:lay", 403, 401}, {"admin", "group:ops", 403, 401},
		{"carol", "user:bob", 200, 401}, {"carol", "dev:user:bob", 200, 401}, {"carol", "host:machine", 200, 401}, {"dora", "user:bob", 200, 401}, {"admin", "user:eve", 200, 401},
		{"eve", "user:eve", 401, 200}, {"eve", "dev:user:eve", 401, 200}, {"host/machine", "host:machine", 401, 200},
	} {
		for _, method := range []string{"GET", "PUT"} {
			for how, want := range map[string]int{"token": c.token, "basic": c.basic} {
				before := keys(t, s)
				q := request{method: method, path: "/authn/dev/api_key?role=" + c.role, as: c.login}
				if how == "basic" {
					q.as, q.header = "", basicAuth(c.login, apiKey(t, s, c.login))
				}
				w := send(t, s, q)
				if w.Code != want {
					t.Errorf("%s by %s with %s, role %q: status %d, want %d", method, c.login, how, c.role, w.Code, want)
				}
				for login, key := range keys(t, s) {
					role := "user:" + login
					if login == "host/machine" {
						role = "host:machine"
					}
					changed := key != before[login]
					if wanted := method == "PUT" && w.Code == 200 && strings.HasSuffix(c.role, role); changed != wanted {
						t.Errorf("%s by %s with %s, role %q: the key of %s changed: %t", method, c.login, how, c.role, login, changed)
					}
				}
			}
		}
	}
}

// A role in the body counts as one in the query.
func TestTheRoleOfAKeyMayBeInTheBody(t *testing.T) {
	s := open(t, Options{Strict: true})
	loadRoot(t, s, "- !user bob\n")
	for body, want := range map[string]int{"role=user:bob": 401, "role=user:nobody": 404, "role=x": 422, "": 200} {
		before := apiKey(t, s, "bob")
		header := basicAuth("admin", apiKey(t, s, "admin"))
		header["Content-Type"] = "application/x-www-form-urlencoded"
		if w := send(t, s, request{method: "PUT", path: "/authn/dev/api_key", body: body, header: header}); w.Code != want || apiKey(t, s, "bob") != before {
			t.Errorf("%q: status %d, want %d", body, w.Code, want)
		}
	}
}

// keys returns the API keys of everyone, by login.
func keys(t *testing.T, s *Server) map[string]string {
	all := map[string]string{}
	for _, login := range []string{"admin", "eve", "bob", "carol", "dora", "host/machine"} {
		all[login] = apiKey(t, s, login)
	}
	return all
}

// Only the own password can be set, and not with a token. Hosts have none.
func TestPasswordsAreTheOwn(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, "- !user bob\n- !host machine\n")
	token := tokenFor(t, s, "bob")
	for _, c := range []struct {
		login, query string
		want         int
	}{
		{"bob", "?role=user:admin", 401}, {"bob", "?role=host:machine", 401}, {"bob", "?role=user:nobody", 404}, {"bob", "?role=x", 422},
		{"admin", "?role=user:bob", 401}, {"host/machine", "", 403}, {"bob", "?role=user:bob", 204}, {"bob", "", 204},
	} {
		w := send(t, s, request{method: "PUT", path: "/authn/dev/password" + c.query, body: "SuperSecret12!!", header: basicAuth(c.login, apiKey(t, s, c.login))})
		if w.Code != c.want {
			t.Errorf("password%s by %s: status %d, want %d", c.query, c.login, w.Code, c.want)
		}
	}
	for query, want := range map[string]int{"": 401, "?role=user:bob": 401, "?role=user:admin": 401, "?role=user:nobody": 404} {
		w := send(t, s, request{method: "PUT", path: "/authn/dev/password" + query, body: "SuperSecret12!!", header: map[string]string{"Authorization": token}})
		if w.Code != want {
			t.Errorf("password%s with a token: status %d, want %d", query, w.Code, want)
		}
	}
	loadRoot(t, s, "- !delete { record: !user bob }\n")
	for _, path := range []string{"api_key", "api_key?role=host:machine", "password"} {
		if w := send(t, s, request{method: "PUT", path: "/authn/dev/" + path, header: map[string]string{"Authorization": token}}); w.Code != 401 {
			t.Errorf("%s with the token of a deleted user: status %d", path, w.Code)
		}
	}
}

func basicAuth(login, secret string) map[string]string {
	return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(login+":"+secret))}
}
