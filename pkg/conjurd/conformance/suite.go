package conformance

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// branch is the policy in which the suite works.
const branch = "syncer-conformance"

// suite is one run.
type suite struct {
	target Target
	client *http.Client
	keys   map[string]string    // login → API key
	tokens map[string]string    // login → Authorization header
	asked  map[string]time.Time // login → time of the token request
	now    func() time.Time
}

// tokenAge is the age at which a token is replaced: half its lifetime.
const tokenAge = 4 * time.Minute

func newSuite(target Target, now func() time.Time) *suite {
	return &suite{
		target: target, client: target.client(nil), now: now,
		keys: map[string]string{target.Login: target.APIKey}, tokens: map[string]string{}, asked: map[string]time.Time{},
	}
}

// Run checks the target. Its cases are recorded transcripts of the genuine server
// 1.24. The name of any other case states the source of its expected answer.
func Run(t *testing.T, target Target) {
	s := newSuite(target, time.Now)
	t.Cleanup(s.client.CloseIdleConnections)
	s.setUp(t)
	for _, part := range []struct {
		name string
		run  func(*suite, *testing.T)
	}{
		{"login and authenticate", (*suite).authn},
		{"tokens", (*suite).token},
		{"single read", (*suite).single},
		{"conditional read", (*suite).conditional},
		{"batch read", (*suite).batch},
		{"set", (*suite).set},
		{"versions", (*suite).versions},
		{"resources", (*suite).resources},
		{"listing", (*suite).listing},
		{"roles", (*suite).roles},
		{"host factories", (*suite).hostFactories},
		{"policies", (*suite).policies},
		{"replacing a policy", (*suite).replace},
		{"policy language", (*suite).language},
		{"dry run", (*suite).dryRun},
		{"credentials", (*suite).credentials},
		{"live tokens", (*suite).live},
		{"JWT", (*suite).jwt},
		{"authenticators without a policy", (*suite).unconfigured},
		{"authn-k8s", (*suite).k8s},
		{"authn-iam", (*suite).iam},
		{"authn-azure", (*suite).azure},
		{"authn-gcp", (*suite).gcp},
		{"authn-cert", (*suite).cert},
		{"transport", (*suite).transport},
		{"known differences", (*suite).differences},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(s, t) })
	}
}

// admin returns the target's login.
func (s *suite) admin() string { return s.target.Login }

// fixture is the policy for most cases. Alice sees most variables. She may not
// execute "readonly" and cannot see "hidden".
const fixture = `
- !policy
  id: syncer-conformance
  body:
  - &seen
    - !variable val1
    - !variable val2
    - !variable empty
    - !variable bin
    - !variable utf8
    - !variable { id: js, mime_type: application/json }
    - !variable "sp ace"
    - !variable "comma,one"
    - !variable "uni/ñandú/日本"
    - !variable a/b/c/d
    - !variable plus+x
    - !variable pct%41x
    - !variable "colon:x"
    - !variable q?x
    - !variable "hash#x"
    - !variable amp&x=1
    - !variable dot.txt
    - !variable tilde~x
    - !variable ver
    - !variable many
    - !variable { id: annotated, annotations: { description: hello world, owner-team: blue } }
  - !variable readonly
  - !variable hidden
  - !variable escapes
  - !user alice
  - !user bob
  - !host myhost
  - !host "sp ace"
  - !host { id: net, restricted_to: [ 10.1.2.0/24 ] }
  - !group staff
  - !grant { role: !group staff, member: !host myhost }
  - !policy sand
  - !permit { role: !user alice, privileges: [ read, execute ], resources: *seen }
  - !permit { role: !user alice, privileges: [ read ], resource: !variable readonly }
  - !permit { role: !user bob, privileges: [ read, execute ], resource: !variable val1 }
`

// values of the fixture's variables.
var values = map[string]string{
	"val1": "one", "val2": "two", "bin": allBytes(), "utf8": "pässwörd €", "js": `{"a":1}`,
	"sp ace": "SPACE", "comma,one": "COMMA", "uni/ñandú/日本": "UNI", "a/b/c/d": "SLASH", "plus+x": "PLUS",
	"pct%41x": "PCT", "colon:x": "COLON", "q?x": "Q", "hash#x": "HASH", "amp&x=1": "AMP", "dot.txt": "DOT",
	"tilde~x": "T", "readonly": "RO", "hidden": "HID", "annotated": "ANN", "escapes": "a\"b\\c\n<&>\u2028\x01é",
}

func allBytes() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

// setUp loads the fixture and deletes it at the end of the test.
func (s *suite) setUp(t *testing.T) {
	t.Helper()
	s.delete(t) // from an earlier run
	t.Cleanup(func() {
		if status := s.delete(t); status != 201 {
			t.Errorf("deleting the suite's policy: status %d", status)
		}
	})
	s.load(t, "root", fixture)
	for id, value := range values {
		res, body := s.do(t, exchange{as: s.admin(), req: "POST /secrets/{a}/variable/{p}%2F" + url.PathEscape(id), body: value})
		if res.StatusCode != 201 {
			t.Fatalf("setting %s: status %d, body %q", id, res.StatusCode, body)
		}
	}
}

// delete removes everything that a run creates, roles first. A server may keep a
// role after the deletion of its policy. A new role with the same name would then
// get no new key.
func (s *suite) delete(t *testing.T) (status int) {
	t.Helper()
	for _, record := range []string{
		"!user alice@{p}", "!user bob@{p}", "!user temp@{p}", "!host {p}/myhost", `!host "{p}/sp ace"`, "!host {p}/net",
		"!host {p}/made", "!host-factory {p}/maker", "!host {p}/sand/h1", "!host {p}/replaced/h1", `!host "{p}/jwt/system:serviceaccount:ns:sa"`, `!host "{p}/jwt/system:serviceaccount:ns:plain"`, `!host "{p}/jwt/system:serviceaccount:ns:poor"`,
		"!policy {p}",
	} {
		res, _ := s.do(t, exchange{as: s.admin(), req: "PATCH /policies/{a}/policy/root", body: "- !delete { record: " + record + " }\n"})
		status = res.StatusCode // the last status, for the policy
	}
	return status
}

// load patches a policy and stores the keys of the roles that it creates.
func (s *suite) load(t *testing.T, policy, text string) {
	t.Helper()
	res, body := s.do(t, exchange{as: s.admin(), req: "PATCH /policies/{a}/policy/" + url.PathEscape(policy), body: text})
	if res.StatusCode != 201 {
		t.Fatalf("loading a policy: status %d, body %q", res.StatusCode, body)
	}
	var out struct {
		Roles map[string]struct {
			Key string `json:"api_key"`
		} `json:"created_roles"`
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatal(err)
	}
	for role, r := range out.Roles {
		s.keys[loginOf(role)] = r.Key
		delete(s.tokens, loginOf(role))
	}
}

// loginOf converts "account:host:a/b" to "host/a/b", and a user to its name.
func loginOf(role string) string {
	parts := strings.SplitN(role, ":", 3)
	if parts[1] == "user" {
		return parts[2]
	}
	return parts[1] + "/" + parts[2]
}

// authorization returns the header for a login. It reuses the previous token if
// that is recent.
func (s *suite) authorization(t *testing.T, login string) string {
	t.Helper()
	login = s.fill(login)
	if now := s.now(); s.tokens[login] == "" || now.Sub(s.asked[login]) >= tokenAge {
		res, body := s.do(t, exchange{req: "POST /authn/{a}/" + url.PathEscape(login) + "/authenticate", body: s.keys[login]})
		if res.StatusCode != 200 {
			t.Fatalf("authenticating %s: status %d", login, res.StatusCode)
		}
		s.tokens[login], s.asked[login] = tokenHeader(body), now
	}
	return s.tokens[login]
}

func tokenHeader(token string) string {
	return `Token token="` + base64.StdEncoding.EncodeToString([]byte(token)) + `"`
}

// Logins of the fixture.
const (
	alice  = "alice@{p}"
	bob    = "bob@{p}"
	myhost = "host/{p}/myhost"
)
