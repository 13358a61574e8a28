package conjurd

import (
	"encoding/pem"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	jwtlib "github.com/golang-jwt/jwt/v5"
)

// TestJWTSettings follows the features of authn-jwt and its status in Conjur 1.24.0. A
// case has the variables of the authenticator, the host's annotations, and the claims.
func TestJWTSettings(t *testing.T) {
	k := newKeyServer(t, time.Now)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.Certificate().Raw}))
	type texts = map[string]string
	static := `{"type":"jwks","value":` + string(*k.set.Load()) + `}`
	ref := jwtlib.MapClaims{"ref": "main"}
	byRef := texts{"ref": "main"}
	for name, c := range map[string]struct {
		settings, notes  texts // "-" as a value removes the default variable
		claims           jwtlib.MapClaims
		status, ofStatus int
		reason           string // in the audit log, and in the answer of status if that fails
	}{
		"as it is":                                  {notes: byRef, claims: ref, status: 200},
		"alias":                                     {settings: texts{"claim-aliases": "branch:ref"}, notes: texts{"branch": "main"}, claims: ref, status: 200},
		"enforced claim with an alias":              {settings: texts{"claim-aliases": "branch:ref", "enforced-claims": "ref"}, notes: texts{"branch": "main"}, claims: ref, status: 200},
		"enforced alias":                            {settings: texts{"claim-aliases": "branch:ref", "enforced-claims": "branch"}, notes: texts{"branch": "main"}, claims: ref, status: 200},
		"enforced claim without an annotation":      {settings: texts{"enforced-claims": "ref, sub"}, notes: byRef, claims: ref, status: 401, reason: "CONJ00057E"},
		"annotation on a claim with an alias":       {settings: texts{"claim-aliases": "branch:ref"}, notes: byRef, claims: ref, status: 401, reason: "CONJ00069E"},
		"annotation on both":                        {settings: texts{"claim-aliases": "branch:ref"}, notes: texts{"ref": "main", "branch": "main"}, claims: ref, status: 401, reason: "CONJ00069E"},
		"annotation on a registered claim":          {notes: texts{"iss": "127.0.0.1"}, status: 401, reason: "CONJ00069E"},
		"annotation that is not a path":             {notes: texts{"actions[0]": "x", "ref": "main"}, claims: ref, status: 401, reason: "CONJ00119E"},
		"annotation without a value":                {notes: texts{"ref": " "}, claims: jwtlib.MapClaims{"ref": " "}, status: 401, reason: "CONJ00100E"},
		"no annotation":                             {status: 401, reason: "CONJ00099E"},
		"missing claim":                             {notes: byRef, status: 401, reason: "CONJ00084E"},
		"another value":                             {notes: byRef, claims: jwtlib.MapClaims{"ref": "dev"}, status: 401, reason: "CONJ00049E"},
		"number":                                    {notes: texts{"ref": "12"}, claims: jwtlib.MapClaims{"ref": 12}, status: 401, reason: "CONJ00084E"},
		"truth":                                     {notes: texts{"ref": "true"}, claims: jwtlib.MapClaims{"ref": true}, status: 401, reason: "CONJ00084E"},
		"list":                                      {notes: byRef, claims: jwtlib.MapClaims{"ref": []string{"main"}}, status: 401, reason: "CONJ00084E"},
		"nested":                                    {notes: texts{"a/ref": "main"}, claims: jwtlib.MapClaims{"a": ref}, status: 200},
		"nested below a name with a slash":          {notes: texts{"a/b/ref": "main"}, claims: jwtlib.MapClaims{"a/b": ref}, status: 401, reason: "CONJ00084E"},
		"alias of an invalid claim":                 {settings: texts{"claim-aliases": "branch:$@$@#s"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "CONJ00104E Failed to validate claim: claim name '$@$@#s' does not match regular expression: "},
		"alias with a slash":                        {settings: texts{"claim-aliases": "a/b:bbb"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "Failed to parse claim aliases: the claim alias name 'a/b' contains '/'."},
		"alias of a registered claim":               {settings: texts{"claim-aliases": "when:exp"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "CONJ00105E"},
		"alias without a claim":                     {settings: texts{"claim-aliases": "branch"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "CONJ00111E"},
		"alias of three parts":                      {settings: texts{"claim-aliases": "a:b:c"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "CONJ00111E"},
		"empty alias":                               {settings: texts{"claim-aliases": "branch:ref,"}, notes: texts{"branch": "main"}, claims: ref, status: 401, ofStatus: 500, reason: "CONJ00110E"},
		"two aliases of a claim":                    {settings: texts{"claim-aliases": "a:ref,b:ref"}, notes: texts{"a": "main"}, claims: ref, status: 401, ofStatus: 500, reason: "CONJ00113E"},
		"two claims of an alias":                    {settings: texts{"claim-aliases": "a:ref,a:sub"}, notes: texts{"a": "main"}, claims: ref, status: 401, ofStatus: 500, reason: "CONJ00113E"},
		"invalid enforced claim":                    {settings: texts{"enforced-claims": "ref, %@^"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "CONJ00104E"},
		"registered enforced claim":                 {settings: texts{"enforced-claims": "iss"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "CONJ00105E"},
		"empty enforced claim":                      {settings: texts{"enforced-claims": "ref,"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "CONJ00107E"},
		"enforced claim twice":                      {settings: texts{"enforced-claims": "ref, ref"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "CONJ00108E"},
		"variable without a value":                  {settings: texts{"audience": ""}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "CONJ00037E Missing value for resource: dev:variable:conjur/authn-jwt/svc/audience"},
		"property that is not a path":               {settings: texts{"token-app-property": "sub[0]"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "sub[0]"},
		"property that is a number":                 {settings: texts{"token-app-property": "n"}, notes: byRef, claims: jwtlib.MapClaims{"n": 7}, status: 401, reason: `no claim "n"`},
		"identity with a slash":                     {settings: texts{"identity-path": "/apps/"}, notes: byRef, claims: jwtlib.MapClaims{"ref": "main", "sub": "/sa"}, status: 200},
		"no keys":                                   {settings: texts{"jwks-uri": "-", "ca-cert": "-"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "CONJ00122E Invalid signing key settings: One of the following must be defined: jwks-uri, public-keys, or provider-uri"},
		"two sources of keys":                       {settings: texts{"public-keys": static, "issuer": "127.0.0.1"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "jwks-uri and public-keys cannot be defined simultaneously"},
		"two other sources":                         {settings: texts{"provider-uri": "https://127.0.0.1:1"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "jwks-uri and provider-uri cannot be defined simultaneously"},
		"static keys with an authority":             {settings: texts{"jwks-uri": "-", "public-keys": static, "issuer": "127.0.0.1"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "ca-cert can only be defined together with jwks-uri or provider-uri"},
		"static keys without an issuer":             {settings: texts{"jwks-uri": "-", "ca-cert": "-", "public-keys": static}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "issuer is mandatory when public-keys is defined"},
		"static keys":                               {settings: texts{"jwks-uri": "-", "ca-cert": "-", "public-keys": static, "issuer": "127.0.0.1"}, notes: byRef, claims: ref, status: 200},
		"static keys that are none":                 {settings: texts{"jwks-uri": "-", "ca-cert": "-", "public-keys": `{"type":"jwks","value":{"keys":[]}}`, "issuer": "x"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "usable key"},
		"unreachable keys":                          {settings: texts{"jwks-uri": "https://127.0.0.1:1/keys"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "jwks-uri"},
		"keys without a scheme":                     {settings: texts{"jwks-uri": "unknow-host.com", "issuer": "i"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "unknow-host.com"},
		"issuer that is not the host of the keys":   {notes: byRef, claims: jwtlib.MapClaims{"ref": "main", "iss": "localhost"}, status: 401, reason: "issuer"},
		"no issuer":                                 {notes: byRef, claims: jwtlib.MapClaims{"ref": "main", "iss": nil}, status: 401, reason: "iss"},
		"issued in the future":                      {notes: byRef, claims: jwtlib.MapClaims{"ref": "main", "iat": time.Now().Add(time.Hour).Unix()}, status: 401, reason: "issued"},
		"provider that is unreachable":              {settings: texts{"jwks-uri": "-", "provider-uri": "https://127.0.0.1:1"}, notes: byRef, claims: ref, status: 401, ofStatus: 500, reason: "127.0.0.1:1"},
		"audience that the token does not have":     {settings: texts{"audience": "conjur"}, notes: byRef, claims: ref, status: 401, reason: "aud"},
		"annotation for the authenticator as such":  {notes: texts{"../ref": "main"}, claims: ref, status: 401, reason: "CONJ00119E"},
		"claim that an alias makes and nobody asks": {settings: texts{"claim-aliases": "ref:sub"}, notes: texts{"ref": "main"}, claims: ref, status: 401, reason: "CONJ00049E"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := texts{"jwks-uri": k.URL, "ca-cert": ca, "token-app-property": "sub", "identity-path": "apps"}
			maps.Copy(settings, c.settings)
			maps.DeleteFunc(settings, func(_, value string) bool { return value == "-" })
			var b, log strings.Builder
			b.WriteString("- !host { id: apps/sa, annotations: { x: y")
			for claim, value := range c.notes {
				fmt.Fprintf(&b, ", %q: %q", "authn-jwt/svc/"+claim, value)
			}
			b.WriteString(" } }\n- !policy\n  id: conjur/authn-jwt/svc\n  body:\n  - !webservice\n  - !webservice status\n" +
				"  - !permit { role: !host /apps/sa, privileges: [ authenticate ], resource: !webservice }\n")
			for variable := range settings {
				fmt.Fprintf(&b, "  - !variable %s\n", variable)
			}
			s := open(t, Options{Strict: true, Audit: &log})
			loadRoot(t, s, b.String())
			for variable, value := range settings {
				if value != "" {
					set(t, s, "conjur/authn-jwt/svc/"+variable, value)
				}
			}
			w := send(t, s, request{method: "POST", path: "/authn-jwt/svc/dev/authenticate", body: "jwt=" + k.token(c.claims)})
			if w.Code != c.status || !strings.Contains(strings.ReplaceAll(log.String(), `\"`, `"`), c.reason) {
				t.Errorf("status %d, %s; log %s", w.Code, w.Body, log.String())
			}
			w = send(t, s, request{method: "GET", path: "/authn-jwt/svc/dev/status", as: "admin"})
			body := decode[struct{ Status, Error string }](t, w)
			if want := max(c.ofStatus, 200); w.Code != want || c.ofStatus != 0 && (body.Status != "error" || !strings.Contains(body.Error, c.reason)) {
				t.Errorf("status route: %d, %+v", w.Code, body)
			}
		})
	}
}

// TestJWTRights checks the order of the checks of a login: the host, its privilege, its
// annotations. And who may ask for the status.
func TestJWTRights(t *testing.T) {
	k := newKeyServer(t, time.Now)
	s := open(t, Options{Strict: true})
	loadRoot(t, s, strings.ReplaceAll(jwksPolicy, "  - !webservice\n", "  - !webservice\n  - !webservice status\n")+
		"- !host { id: far, restricted_to: [ 10.1.1.1 ], annotations: { authn-jwt/svc/sub: sa } }\n- !permit { role: !host far, privileges: [ authenticate ], resource: !webservice conjur/authn-jwt/svc }\n"+
		"- !host poor\n- !user eve\n- !user writer\n- !user ops\n- !permit { role: !user writer, privileges: [ update ], resource: !webservice conjur/authn-jwt/svc/status }\n"+
		"- !permit { role: !user ops, privileges: [ read ], resource: !webservice conjur/authn-jwt/svc/status }\n- !policy { id: conjur/authn-jwt/bare, body: [ !webservice status ] }\n"+
		"- !policy\n  id: conjur/authn-iam/aws\n  body:\n  - !webservice\n  - !webservice status\n")
	for name, value := range map[string]string{
		"jwks-uri": k.URL, "token-app-property": "name", "ca-cert": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.Certificate().Raw})),
	} {
		set(t, s, "conjur/authn-jwt/svc/"+name, value)
	}
	for host, status := range map[string]int{"sa": 200, "poor": 403, "nobody": 401, "far": 401, "far 10.1.1.1": 200} {
		host, from, _ := strings.Cut(host, " ")
		token := k.token(jwtlib.MapClaims{"name": host, "sub": "sa"})
		if w := send(t, s, request{method: "POST", path: "/authn-jwt/svc/dev/authenticate", body: "jwt=" + token, from: from}); w.Code != status || status == 403 && w.Body.Len() > 0 {
			t.Errorf("%s: status %d, %s", host, w.Code, w.Body)
		}
	}
	for _, c := range []struct {
		as, authenticator string
		status            int
		reason            string
	}{
		{"ops", "authn-jwt/svc", 200, ""},
		{"eve", "authn-jwt/svc", 403, "CONJ00006E 'eve' does not have 'read' privilege on dev:webservice:conjur/authn-jwt/svc/status"},
		{"writer", "authn-jwt/svc", 403, "CONJ00006E"},
		{"eve", "authn-jwt/none", 404, "CONJ00005E Webservice 'authn-jwt/none/status' not found"},
		{"admin", "authn-jwt/bare", 404, "CONJ00005E Webservice 'authn-jwt/bare' not found"},
		{"admin", "authn-iam/aws", 501, "CONJ00056E"},
	} {
		w := send(t, s, request{method: "GET", path: "/" + c.authenticator + "/dev/status", as: c.as})
		if w.Code != c.status || !strings.Contains(decode[struct{ Error string }](t, w).Error, c.reason) {
			t.Errorf("status of %s for %s: %d, %s", c.authenticator, c.as, w.Code, w.Body)
		}
	}
	if w := send(t, s, request{method: "PATCH", path: "/authn-jwt/svc/dev", as: "admin", body: "enabled=false"}); w.Code != 204 {
		t.Fatal(w.Code)
	}
	if w := send(t, s, request{method: "GET", path: "/authn-jwt/svc/dev/status", as: "ops"}); w.Code != 500 || !strings.Contains(w.Body.String(), "CONJ00004E") {
		t.Errorf("switched off: %d, %s", w.Code, w.Body)
	}
}
