package conjurd

import (
	"strings"
	"testing"
)

const twoAuthenticators = `
- !policy
  id: conjur/authn-jwt/one
  body:
  - !webservice
  - !webservice status
- !policy { id: conjur/authn-jwt/two, body: [ !webservice ] }
- !user eve
- !user ops
- !permit { role: !user ops, privileges: [ update ], resource: !webservice conjur/authn-jwt/two }
`

// Who may update an authenticator's webservice switches it, and the list of
// authenticators, which is for everybody, says so.
func TestSwitchingAuthenticators(t *testing.T) {
	s := open(t, Options{Strict: true})
	loadRoot(t, s, twoAuthenticators)
	enabled := func() string {
		_, after, _ := strings.Cut(send(t, s, request{method: "GET", path: "/authenticators"}).Body.String(), `"enabled":`)
		return after
	}
	for _, c := range []struct {
		as, service, body string
		status            int
		enabled           string
	}{
		{"admin", "one", "enabled=true", 204, `["authn","authn-jwt/one","authn-jwt/two"]}`},
		{"ops", "two", "enabled=false", 204, `["authn","authn-jwt/one"]}`},
		{"ops", "one", "enabled=false", 403, `["authn","authn-jwt/one"]}`},
		{"eve", "two", "enabled=true", 403, `["authn","authn-jwt/one"]}`},
		{"", "two", "enabled=true", 401, `["authn","authn-jwt/one"]}`},
		{"admin", "three", "enabled=true", 401, `["authn","authn-jwt/one"]}`},
		{"ops", "two", "enabled=true", 204, `["authn","authn-jwt/one","authn-jwt/two"]}`},
	} {
		w := send(t, s, request{method: "PATCH", path: "/authn-jwt/" + c.service + "/dev", as: c.as, body: c.body})
		if got := enabled(); w.Code != c.status || got != c.enabled {
			t.Errorf("%q by %q for %s: status %d, then enabled are %s", c.body, c.as, c.service, w.Code, got)
		}
	}
}

// Without Strict an error says more, but a text that is refused is refused in
// both.
func TestStrictErrorsOfPolicies(t *testing.T) {
	for text, messages := range map[string][2]string{
		"- !variable x\n- !variable x\n": {`"Missing required option account"}}`, `"line":2,"column":0`},
		"- !permit { role: !user admin, privileges: [ read ], resource: !variable /x }\n": {
			`"Illegal absolute id: /x"}}`, `"Illegal absolute id: /x","innererror":{"code":"policy_invalid","filename":"policy","line":1,`},
	} {
		for i, strict := range []bool{true, false} {
			w := send(t, open(t, Options{Strict: strict}), request{method: "PATCH", path: "/policies/dev/policy/root", as: "admin", body: text})
			if w.Code != 422 || !strings.Contains(w.Body.String(), messages[i]) {
				t.Errorf("%q, strict %t: status %d, %s", text, strict, w.Code, w.Body)
			}
		}
	}
}
