package conformance

import (
	"encoding/base64"
	"encoding/json"
	"testing"
)

// basic returns a basic authentication header.
func basic(login, password string) map[string]string {
	return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(login+":"+password))}
}

func (s *suite) authn(t *testing.T) {
	key := s.keys[s.admin()]
	admin := "POST /authn/{a}/" + s.admin() + "/authenticate"
	s.runAll(t, []exchange{
		{name: "login", req: "GET /authn/{a}/login", header: basic(s.admin(), key), want: ok(asText, key)},
		{name: "login with a wrong password", req: "GET /authn/{a}/login", header: basic(s.admin(), "wrong"), want: unauthorized},
		{name: "login of nobody", req: "GET /authn/{a}/login", header: basic("nobody", "x"), want: unauthorized},
		{name: "login to no account", req: "GET /authn/nope/login", header: basic(s.admin(), key), want: unauthorized},
		{name: "login without a header", req: "GET /authn/{a}/login", want: unauthorized},
		{name: "authenticate", req: admin, body: key, want: answer{status: 200, kind: asJSON, match: isToken}},
		{name: "authenticate in base64", req: admin, body: key, header: map[string]string{"Accept-Encoding": "gzip, BASE64"},
			want: answer{status: 200, kind: asText, match: isEncodedToken, header: map[string]string{"Content-Encoding": "base64"}}},
		{name: "a q-value does not select base64", req: admin, body: key, header: map[string]string{"Accept-Encoding": "gzip, base64;q=1"},
			want: answer{status: 200, kind: asJSON, match: isToken}},
		{name: "an expired token is ignored", req: admin, body: key, header: map[string]string{"Authorization": `Token token="aGVsbG8="`},
			want: answer{status: 200, kind: asJSON, match: isToken}},
		{name: "wrong key", req: admin, body: "wrong", want: unauthorized},
		{name: "key and line feed", req: admin, body: key + "\n", want: unauthorized},
		{name: "empty key", req: admin, want: unauthorized},
		{name: "unknown user", req: "POST /authn/{a}/nobody/authenticate", body: key, want: unauthorized},
		{name: "unknown account", req: "POST /authn/nope/admin/authenticate", body: key, want: unauthorized},
		{name: "host", req: "POST /authn/{a}/host%2F{p}%2Fmyhost/authenticate", body: s.keys["host/"+branch+"/myhost"],
			want: answer{status: 200, kind: asJSON, match: isToken}},
		{name: "host with open slashes", req: "POST /authn/{a}/host/{p}/myhost/authenticate", body: s.keys["host/"+branch+"/myhost"], want: nowhere},
		{name: "host with one open slash", req: "POST /authn/{a}/host/myhost/authenticate", body: s.keys["host/"+branch+"/myhost"], want: unauthorized},
		{name: "space as %20", req: "POST /authn/{a}/host%2F{p}%2Fsp%20ace/authenticate", body: s.keys["host/"+branch+"/sp ace"],
			want: answer{status: 200, kind: asJSON, match: isToken}},
		{name: "space as +", req: "POST /authn/{a}/host%2F{p}%2Fsp+ace/authenticate", body: s.keys["host/"+branch+"/sp ace"], want: unauthorized},
	})
}

// isToken checks the format of an access token and its default lifetime of 8
// minutes.
func isToken(body string) bool {
	var t struct{ Protected, Payload, Signature string }
	if json.Unmarshal([]byte(body), &t) != nil || t.Signature == "" {
		return false
	}
	protected, err1 := base64.URLEncoding.DecodeString(t.Protected)
	payload, err2 := base64.URLEncoding.DecodeString(t.Payload)
	_, err3 := base64.URLEncoding.DecodeString(t.Signature)
	var h struct{ Alg, Kid string }
	var c struct {
		Iat, Exp int64
		Sub      string
	}
	return err1 == nil && err2 == nil && err3 == nil &&
		json.Unmarshal(protected, &h) == nil && h.Alg == "conjur.org/slosilo/v2" && len(h.Kid) == 64 &&
		json.Unmarshal(payload, &c) == nil && c.Sub != "" && c.Exp-c.Iat == 480
}

func isEncodedToken(body string) bool {
	token, err := base64.StdEncoding.DecodeString(body)
	return err == nil && isToken(string(token))
}

func (s *suite) token(t *testing.T) {
	read := "GET /secrets/{a}/variable/{p}%2Fval1"
	with := func(auth string) map[string]string { return map[string]string{"Authorization": auth} }
	bogus := tokenHeader(`{"protected":"eyJhIjoxfQ==","payload":"e30=","signature":"AAAA"}`)
	token := s.authorization(t, s.admin())
	unquoted := "Token token=" + token[len(`Token token="`):len(token)-1]
	tampered := s.tamper(t, token)
	s.runAll(t, []exchange{
		{name: "none", req: read, want: bare401("Authorization missing")},
		{name: "not JSON", req: read, header: with(`Token token="aGVsbG8="`), want: bare401("Malformed authorization token")},
		{name: "bogus", req: read, header: with(bogus), want: bare401("Unauthorized: Invalid token")},
		{name: "tampered", req: read, header: with(tampered), want: bare401("Unauthorized: Invalid token")},
		{name: "unquoted", req: read, header: with(unquoted), want: bare401("Authorization missing")},
		{name: "bearer", req: read, header: with("Bearer " + unquoted[12:]), want: bare401("Authorization missing")},
		{name: "none, on a batch", req: "GET /secrets?variable_ids={a}:variable:{p}/val1", want: bare401("Authorization missing")},
		{name: "none, for the newer API", req: read, header: map[string]string{"Accept": "application/x.secretsmgr.v2beta+json"}, want: bare401("")},
		{name: "none, on an unknown path", req: "GET /nope", want: bare401("Authorization missing")},
		{name: "none, on whoami, as a browser", req: "GET /whoami", header: map[string]string{"Accept": "text/html"}, want: bare401("Authorization missing")},
		{name: "whoami", as: alice, req: "GET /whoami", want: answer{status: 200, kind: asJSON,
			match: contains(`"user_agent":"conformance/1","account":"`+s.target.Account+`","username":"alice@`+branch+`","token_issued_at":"`, `.000+00:00"}`)}},
		{name: "unknown path", as: alice, req: "GET /nope", want: nowhere},
		{name: "info", as: alice, req: "GET /info", want: nowhere},
		{name: "health", as: alice, req: "GET /health", want: nowhere},
		{name: "health without a token", req: "GET /health", want: bare401("Authorization missing")},
		{name: "front page, as the Go client", req: "GET /", header: map[string]string{"Accept": "application/json, text/html"},
			want: answer{status: 200, kind: asJSON, match: contains(`"version":"`)}},
		{name: "front page, as nobody in particular", req: "GET /", want: answer{status: 200, kind: noPath, match: contains("1.24.0"), page: true}},
		{name: "authenticators", req: "GET /authenticators", want: answer{status: 200, kind: asJSON,
			match: contains(`{"installed":["authn",`, `"configured":["authn"`, `"enabled":["authn"`)}},
		{name: "front page", req: "GET /", header: map[string]string{"Accept": "application/json"}, want: answer{status: 200, kind: asJSON,
			match: contains(`"version":"`), header: map[string]string{"Vary": "Accept"}}},
	})
}

// tamper changes a letter of the token's signature.
func (s *suite) tamper(t *testing.T, header string) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(header[len(`Token token="`) : len(header)-1])
	if err != nil {
		t.Fatal(err)
	}
	i := len(raw) - 20
	if raw[i] == 'A' {
		raw[i] = 'B'
	} else {
		raw[i] = 'A'
	}
	return tokenHeader(string(raw))
}
