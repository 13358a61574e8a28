package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// loaded matches the answer to a load that created exactly these roles.
func (s *suite) loaded(roles ...string) func(string) bool {
	return func(body string) bool {
		var out struct {
			Roles   map[string]struct{ ID string } `json:"created_roles"`
			Version int
		}
		if json.Unmarshal([]byte(body), &out) != nil || len(out.Roles) != len(roles) || out.Version == 0 {
			return false
		}
		for _, r := range roles {
			if out.Roles[s.fill(r)].ID != s.fill(r) {
				return false
			}
		}
		return true
	}
}

func policyInvalid(message string) answer {
	return answer{status: 422, kind: asJSON, body: `{"error":{"code":"policy_invalid","message":"` + message + `"}}`}
}

// eitherText is policyInvalid for an error with two possible texts. The genuine
// server shows the second text only if CONJUR_ACCOUNT is in its environment. That
// text may be longer.
func (s *suite) eitherText(message, real string) answer {
	bad := policyInvalid(message)
	bad.match = func(body string) bool { return body == s.fill(bad.body) || strings.Contains(body, s.fill(real)) }
	return bad
}

func notValid(field, message string) answer {
	return answer{status: 422, kind: asJSON, body: `{"error":{"code":"validation_failed","message":"` + field + ` ` + message +
		`","details":[{"code":"validation_failed","target":"` + field + `","message":"` + message + `"}]}}`}
}

func (s *suite) policies(t *testing.T) {
	sand := "/policies/{a}/policy/{p}%2Fsand"
	done := func(roles ...string) answer { return answer{status: 201, kind: asJSON, match: s.loaded(roles...)} }
	gone := unknown("Policy", "policy", "{p}/sand")
	s.runAll(t, []exchange{
		{name: "add", as: s.admin(), req: "POST " + sand,
			body: "- !variable a\n- !variable b\n- !host h1\n- !permit { role: !host h1, privileges: [read, execute], resource: !variable a }\n",
			want: done("{a}:host:{p}/sand/h1")},
		{name: "add again", as: s.admin(), req: "POST " + sand, body: "- !variable a\n- !host h1\n", want: ok2(`{"created_roles":{},"version":2}`)},
		{name: "POST does not delete", as: s.admin(), req: "POST " + sand, body: "- !delete\n  record: !variable b\n",
			want: notValid("policy_text", "may not contain deletion statements")},
		{name: "value to be deleted", as: s.admin(), req: "POST /secrets/{a}/variable/{p}%2Fsand%2Fb", body: "B1", want: created},
		{name: "PATCH deletes", as: s.admin(), req: "PATCH " + sand, body: "- !delete\n  record: !variable b\n", want: ok2(`{"created_roles":{},"version":3}`)},
		{name: "deleted", as: s.admin(), req: "GET /secrets/{a}/variable/{p}%2Fsand%2Fb", want: missing("{a}:variable:{p}/sand/b")},
		{name: "PATCH adds", as: s.admin(), req: "PATCH " + sand, body: "- !variable b\n", want: ok2(`{"created_roles":{},"version":4}`)},
		{name: "made again without value", as: s.admin(), req: "GET /secrets/{a}/variable/{p}%2Fsand%2Fb", want: missing("{a}:variable:{p}/sand/b")},
		{name: "made again without versions", as: s.admin(), req: "GET /resources/{a}/variable/{p}%2Fsand%2Fb", want: answer{status: 200, kind: asJSON,
			match: contains(s.fill(`"id":"{a}:variable:{p}/sand/b","owner":"{a}:policy:{p}/sand","policy":"{a}:policy:{p}/sand","permissions":[],"annotations":[],"secrets":[]}`))}},
		{name: "versions begin anew", as: s.admin(), req: "POST /secrets/{a}/variable/{p}%2Fsand%2Fb", body: "B2", want: created},
		{name: "version 1 is new", as: s.admin(), req: "GET /secrets/{a}/variable/{p}%2Fsand%2Fb?version=1", want: ok(asBytes, "B2")},
		{name: "empty", as: s.admin(), req: "POST " + sand, want: notValid("policy_text", "is not present")},
		{name: "bad YAML", as: s.admin(), req: "POST " + sand, body: "- !variable\n  id: [\n",
			want: policyInvalid("did not find expected node content while parsing a flow node")},
		{name: "unknown tag", as: s.admin(), req: "POST " + sand, body: "- !nosuch x\n", want: answer{status: 422, kind: asJSON,
			body: `{"error":{"code":"policy_invalid","message":"Error at line 1, column 0 in policy : Unrecognized data type '!nosuch'",` +
				`"innererror":{"code":"policy_invalid","filename":"policy","line":1,"column":0}}}`}},
		{name: "dangling reference", as: s.admin(), req: "POST " + sand, body: "- !variable not-made\n- !grant { role: !group nope, member: !user nobody }\n",
			want: policyInvalid("Group '{p}/sand/nope' not found in account '{a}'")},
		{name: "nothing of it is loaded", as: s.admin(), req: "GET /resources/{a}/variable/{p}%2Fsand%2Fnot-made",
			want: unknown("Variable", "variable", "{p}/sand/not-made")},
		{name: "missing branch", as: s.admin(), req: "POST /policies/{a}/policy/{p}%2Fnope", body: "- !variable a\n", want: unknown("Policy", "policy", "{p}/nope")},
		{name: "declared twice", as: s.admin(), req: "POST " + sand, body: "- !variable a\n- !variable a\n",
			want: s.eitherText("Missing required option account", "variable '{p}/sand/a' is declared more than once")},
		{name: "not UTF-8", as: s.admin(), req: "POST " + sand, body: "- !variable caf\xe9 au lait\n", want: policyInvalid("invalid trailing UTF-8 octet")},
		{name: "invisible branch", as: alice, req: "POST " + sand, body: "- !variable a\n", want: gone},
		{name: "invisible root", as: alice, req: "POST /policies/{a}/policy/root", body: "- !variable a\n", want: unknown("Policy", "policy", "root")},
		{name: "as JSON", as: s.admin(), req: "POST " + sand, body: "- !variable j\n", header: map[string]string{"Content-Type": "application/json"}, want: done()},
		{name: "warning", as: s.admin(), req: "POST " + sand, body: "- !variable\n  id: w\n  annotations:\n    kind: foo\n", want: answer{status: 201, kind: asJSON,
			match: contains(`"warnings":["Annotation 'kind' matches a known policy attribute. This annotation will not be treated as a standard attribute and may not have the intended effect."]`)}},
		{name: "odd id", as: s.admin(), req: "POST /policies/{a}/policy/{p}", body: "- !policy \"we ird/ñ\"\n", want: done()},
		{name: "load into it", as: s.admin(), req: "POST /policies/{a}/policy/{p}%2Fwe%20ird%2F%C3%B1", body: "- !variable x\n", want: ok2(`{"created_roles":{},"version":1}`)},
		{name: "versions of a policy", as: s.admin(), req: "GET /resources/{a}/policy/{p}%2Fsand", want: answer{status: 200, kind: asJSON, match: contains(
			`"policy_text":"- !variable b\n"`, `"policy_sha256":"a11876669f9301ec1802d08d155e0601a3e6222c1c36a6bce6ab76230345478a"`, `"role":"`+s.target.Account+`:user:admin"}`)}},
		{name: "effective policy, invisible", as: alice, req: "GET " + sand, want: gone},
		{name: "effective policy as JSON", as: s.admin(), req: "GET /policies/{a}/policy/{p}%2Fwe%20ird%2F%C3%B1", header: map[string]string{"Content-Type": "application/json"},
			want: answer{status: 200, kind: asJSON, match: contains(`{"variable":{"id":"x"}}`)}},
	})
}

// ok2 is the answer to a successful load.
func ok2(body string) answer { return answer{status: 201, kind: asJSON, body: body} }

func (s *suite) replace(t *testing.T) {
	sand := "/policies/{a}/policy/{p}%2Freplaced"
	read := func(id string) string { return "GET /secrets/{a}/variable/{p}%2Freplaced%2F" + id }
	gone := func(id string) answer { return missing("{a}:variable:{p}/replaced/" + id) }
	s.load(t, branch, "- !policy replaced\n")
	s.load(t, branch+"/replaced", "- !variable a\n- !variable b\n- !host h1\n- !permit { role: !host h1, privileges: [read, execute], resource: !variable a }\n")
	s.runAll(t, []exchange{
		{name: "value", as: s.admin(), req: "POST /secrets/{a}/variable/{p}%2Freplaced%2Fa", body: "A1", want: created},
		{name: "PUT", as: s.admin(), req: "PUT " + sand, body: "- !variable a\n- !variable c\n", want: ok2(`{"created_roles":{},"version":2}`)},
		{name: "a kept variable has its value", as: s.admin(), req: read("a"), want: ok(asBytes, "A1")},
		{name: "an omitted variable is gone", as: s.admin(), req: read("b"), want: gone("b")},
		{name: "permissions of a variable that is gone", as: s.admin(), req: "GET /resources/{a}/variable/{p}%2Freplaced%2Fa", want: answer{status: 200, kind: asJSON,
			match: contains(`"permissions":[],"annotations":[],"secrets":[{"version":1,"expires_at":null}]}`)}},
		{name: "PUT of an empty list", as: s.admin(), req: "PUT " + sand, body: "[]\n", want: ok2(`{"created_roles":{},"version":3}`)},
		{name: "PUT of nothing", as: s.admin(), req: "PUT " + sand, want: notValid("policy_text", "is not present")},
		{name: "all is gone", as: s.admin(), req: "GET /resources/{a}/variable/{p}%2Freplaced%2Fa", want: unknown("Variable", "variable", "{p}/replaced/a")},
	})
}

func (s *suite) dryRun(t *testing.T) {
	s.load(t, branch, "- !policy dry\n")
	dry := "POST /policies/{a}/policy/{p}%2Fdry?dryRun=true"
	policyItem := func(memberships string) string {
		return `{"identifier":"{a}:policy:{p}/dry","id":"{p}/dry","type":"policy","owner":"{a}:policy:{p}","policy":"{a}:policy:{p}","permissions":{},` +
			`"annotations":{},"members":["{a}:policy:{p}"],"memberships":[` + memberships + `],"restricted_to":[]}`
	}
	s.runAll(t, []exchange{
		{name: "valid", as: s.admin(), req: dry, body: "- !variable dry\n- !host hdry\n", want: ok(asJSON,
			`{"status":"Valid YAML","created":{"items":[{"identifier":"{a}:host:{p}/dry/hdry","id":"{p}/dry/hdry","type":"host","owner":"{a}:policy:{p}/dry",`+
				`"policy":"{a}:policy:{p}/dry","permissions":{},"annotations":{},"members":["{a}:policy:{p}/dry"],"memberships":[],"restricted_to":[]},`+
				`{"identifier":"{a}:variable:{p}/dry/dry","id":"{p}/dry/dry","type":"variable","owner":"{a}:policy:{p}/dry","policy":"{a}:policy:{p}/dry",`+
				`"permitted":{},"annotations":{}}]},"updated":{"before":{"items":[`+policyItem("")+`]},"after":{"items":[`+
				policyItem(`"{a}:host:{p}/dry/hdry"`)+`]}},"deleted":{"items":[]}}`)},
		{name: "nothing is made", as: s.admin(), req: "GET /resources/{a}/variable/{p}%2Fdry%2Fdry", want: unknown("Variable", "variable", "{p}/dry/dry")},
		{name: "invalid", as: s.admin(), req: dry, body: "- !nosuch x\n", want: answer{status: 422, kind: asJSON,
			body: `{"status":"Invalid YAML","errors":[{"line":1,"column":0,"message":"Unrecognized data type '!nosuch'\nThe tag must be one of the following: ` +
				`!delete, !deny, !grant, !group, !host, !host-factory, !layer, !permit, !policy, !revoke, !user, !variable, !webservice",` +
				`"context":{"policy_id":"{p}/dry","offending_lines":[1]}}]}`}},
	})
}

func (s *suite) credentials(t *testing.T) {
	name := s.fill(alice)
	key := s.keys[name]
	const password = "SuperSecret12!!"
	weak := "CONJ00046E The password you have chosen does not meet the complexity requirements. Choose a password that includes: " +
		"12-128 characters, 2 uppercase letters, 2 lowercase letters, 1 digit and 1 special character"
	tooWeak := answer{status: 401, kind: asJSON, body: `{"error":{"code":"unauthorized","message":"Credential strength is insufficient"}}`}
	s.runAll(t, []exchange{
		{name: "own key with a token", as: alice, req: "PUT /authn/{a}/api_key",
			want: tooWeak},
		{name: "own key's age with a token", as: alice, req: "GET /authn/{a}/api_key", want: tooWeak},
		{name: "password with a token", as: alice, req: "PUT /authn/{a}/password", body: password, want: tooWeak},
		{name: "weak password", req: "PUT /authn/{a}/password", header: basic(name, key), body: "short", want: notValid("password", weak)},
		{name: "password", req: "PUT /authn/{a}/password", header: basic(name, key), body: password, want: answer{status: 204}},
		{name: "login with it", req: "GET /authn/{a}/login", header: basic(name, password), want: ok(asText, key)},
		{name: "authenticate with it", req: "POST /authn/{a}/" + name + "/authenticate", body: password, want: unauthorized},
	})
	s.run(t, exchange{name: "key of nobody", as: s.admin(), req: "PUT /authn/{a}/api_key?role=host:{p}/nobody",
		want: answer{status: 404, kind: asJSON, match: contains("CONJ00123E")}})
	old := s.keys[s.fill(bob)]
	s.run(t, exchange{name: "a read before the rotation", as: bob, req: "GET /secrets/{a}/variable/{p}%2Fval1", want: ok(asBytes, "one")})
	for _, how := range []exchange{
		{name: "own key", req: "PUT /authn/{a}/api_key", header: basic(s.fill(bob), old)},
		{name: "key of another", as: s.admin(), req: "PUT /authn/{a}/api_key?role=user:bob@{p}"},
	} {
		res, body := s.do(t, how)
		if res.StatusCode != 200 || body == old || len(body) < 40 {
			t.Fatalf("%s: status %d, a key of %d bytes", how.name, res.StatusCode, len(body))
		}
		s.keys[s.fill(bob)] = body
	}
	s.runAll(t, []exchange{
		{name: "old key", req: "POST /authn/{a}/bob@{p}/authenticate", body: old, want: unauthorized},
		{name: "new key", req: "POST /authn/{a}/bob@{p}/authenticate", body: s.keys[s.fill(bob)], want: answer{status: 200, kind: asJSON, match: isToken}},
		{name: "the token outlives the key", as: bob, req: "GET /secrets/{a}/variable/{p}%2Fval1", want: ok(asBytes, "one")},
		{name: "when it was rotated", as: s.admin(), req: "GET /authn/{a}/api_key?role=user:bob@{p}",
			want: answer{status: 200, kind: asJSON, match: contains(s.fill(`{"role":"{a}:user:bob@{p}","timestamp":"`), `Z"}`)}},
	})
	net := s.keys[s.fill("host/{p}/net")]
	from := "POST /authn/{a}/host%2F{p}%2Fnet/authenticate"
	s.run(t, exchange{name: "from a wrong address", req: from, body: net, want: unauthorized})
	if s.target.Ours { // a genuine server may not be on loopback, and then trusts no header
		s.run(t, exchange{name: "behind a local proxy", req: from, body: net, header: map[string]string{"X-Forwarded-For": "10.1.2.3"},
			want: answer{status: 200, kind: asJSON, match: isToken}})
	}
}

// live checks that a policy change affects existing tokens.
func (s *suite) live(t *testing.T) {
	read := "GET /secrets/{a}/variable/{p}%2Fval1"
	patch := "PATCH /policies/{a}/policy/{p}"
	change := func(what, in string) string { // in: id of the policy relative to the branch
		return fmt.Sprintf("- !%s\n  role: !user %sbob\n  privileges: [execute]\n  resource: !variable %sval1\n", what, in, in)
	}
	root := "PATCH /policies/{a}/policy/root"
	loaded := answer{status: 201, kind: asJSON, match: s.loaded()}
	s.runAll(t, []exchange{
		{name: "allowed", as: bob, req: read, want: ok(asBytes, "one")},
		{name: "deny by another policy than the permit", as: s.admin(), req: patch, body: change("deny", ""), want: loaded},
		{name: "still allowed", as: bob, req: read, want: ok(asBytes, "one")},
		{name: "deny", as: s.admin(), req: root, body: change("deny", "{p}/"), want: loaded},
		{name: "denied", as: bob, req: read, want: forbidden},
		{name: "permit", as: s.admin(), req: root, body: change("permit", "{p}/"), want: loaded},
		{name: "permitted", as: bob, req: read, want: ok(asBytes, "one")},
	})
	s.load(t, branch, "- !user temp\n- !group readers\n- !permit { role: !group readers, privileges: [read, execute], resource: !variable val1 }\n- !grant { role: !group readers, member: !user temp }\n")
	temp := "temp@{p}"
	s.runAll(t, []exchange{
		{name: "by a group", as: temp, req: read, want: ok(asBytes, "one")},
		{name: "revoke", as: s.admin(), req: patch, body: "- !revoke { role: !group readers, member: !user temp }\n", want: loaded},
		{name: "revoked", as: temp, req: read, want: missing("{a}:variable:{p}/val1")},
		{name: "delete the role", as: s.admin(), req: patch, body: "- !delete { record: !user temp }\n", want: loaded},
		{name: "deleted role reads", as: temp, req: read, want: forbidden},
		{name: "deleted role reads a batch", as: temp, req: ids("val1"), want: forbidden},
		{name: "deleted role asks who it is", as: temp, req: "GET /whoami", want: answer{status: 200, kind: asJSON, match: contains(`"username":"temp@`)}},
		{name: "deleted role authenticates", req: "POST /authn/{a}/temp@{p}/authenticate", body: s.keys[s.fill(temp)], want: unauthorized},
	})
}

// transport checks limits of the server's HTTP parser.
func (s *suite) transport(t *testing.T) {
	query := func(n int) string {
		q := strings.Builder{}
		q.WriteString("variable_ids=")
		for i := 1; q.Len() < n; i++ {
			fmt.Fprintf(&q, "%s:variable:x%05d,", s.target.Account, i)
		}
		return "GET /secrets?" + q.String()[:n]
	}
	first := missing("{a}:variable:x00001")
	tooLong := answer{status: 400}
	field := func(n int) map[string]string { return map[string]string{"X-Long": strings.Repeat("x", n)} }
	s.runAll(t, []exchange{
		{name: "query of 10,240 bytes", as: s.admin(), req: query(10_240), want: first},
		{name: "query of 10,241 bytes", fresh: true, as: s.admin(), req: query(10_241), want: tooLong},
		{name: "query of 16,000 bytes", fresh: true, as: s.admin(), req: query(16_000), want: tooLong},
		{name: "path of 9,000 bytes", fresh: true, as: s.admin(), req: "GET /secrets/{a}/variable/" + strings.Repeat("x", 9_000), want: tooLong},
		{name: "path of 8,000 bytes", as: s.admin(), req: "GET /secrets/{a}/variable/" + strings.Repeat("x", 7_900), want: missing("{a}:variable:" + strings.Repeat("x", 7_900))},
		{name: "header field of 79 KiB", as: s.admin(), req: "GET /secrets/{a}/variable/{p}%2Fval1", header: field(79 << 10), want: ok(asBytes, "one")},
		{name: "header field of 81 KiB", fresh: true, as: s.admin(), req: "GET /secrets/{a}/variable/{p}%2Fval1", header: field(81 << 10), want: tooLong},
	})
}
