package conformance

import (
	"encoding/json"
	"slices"
	"testing"
)

func (s *suite) resources(t *testing.T) {
	check := func(id, more string) string {
		return "GET /resources/{a}/variable/{p}%2F" + id + "?check=true" + more
	}
	const execute = "&privilege=execute"
	allowed := answer{status: 204}
	s.runAll(t, []exchange{
		{name: "annotations and permissions", as: alice, req: "GET /resources/{a}/variable/{p}%2Fannotated", want: answer{status: 200, kind: asJSON, match: contains(s.fill(
			`"id":"{a}:variable:{p}/annotated","owner":"{a}:policy:{p}","policy":"{a}:policy:root","permissions":[{"privilege":"execute","role":"{a}:user:alice@{p}",` +
				`"policy":"{a}:policy:root"},{"privilege":"read","role":"{a}:user:alice@{p}","policy":"{a}:policy:root"}],"annotations":[{"name":"description",` +
				`"value":"hello world","policy":"{a}:policy:root"},{"name":"owner-team","value":"blue","policy":"{a}:policy:root"}],"secrets":[{"version":1,"expires_at":null}]}`))}},
		{name: "policy", as: s.admin(), req: "GET /resources/{a}/policy/{p}", want: answer{status: 200, kind: asJSON, match: contains(s.fill(
			`"id":"{a}:policy:{p}","owner":"{a}:user:admin","policy":"{a}:policy:root","permissions":[],"annotations":[],"policy_versions":[]`))}},
		{name: "missing", as: s.admin(), req: "GET /resources/{a}/variable/{p}%2Fnope", want: unknown("Variable", "variable", "{p}/nope")},
		{name: "invisible", as: alice, req: "GET /resources/{a}/variable/{p}%2Fhidden", want: unknown("Variable", "variable", "{p}/hidden")},
		{name: "check, admin", as: s.admin(), req: check("val1", execute), want: allowed},
		{name: "check", as: alice, req: check("val1", execute), want: allowed},
		{name: "check, not allowed", as: alice, req: check("readonly", execute), want: answer{status: 404, kind: asHTML}},
		{name: "check, invisible", as: alice, req: check("hidden", execute), want: unknown("Variable", "variable", "{p}/hidden")},
		{name: "check, missing", as: alice, req: check("nope", execute), want: unknown("Variable", "variable", "{p}/nope")},
		{name: "check of nothing", as: alice, req: check("val1", ""), want: badArgument("privilege")},
		{name: "check of nothing, invisible", as: alice, req: check("hidden", ""), want: badArgument("privilege")},
		{name: "check of nothing, missing", as: alice, req: check("nope", ""), want: badArgument("privilege")},
		{name: "check for another", as: s.admin(), req: check("val1", execute+"&role={a}:user:alice@{p}"), want: allowed},
		{name: "permitted roles", as: s.admin(), req: "GET /resources/{a}/variable/{p}%2Fval1?permitted_roles=true&privilege=execute", want: answer{status: 200, kind: asJSON,
			match: sameSet(s.fill("{a}:user:alice@{p}"), s.fill("{a}:user:bob@{p}"), s.fill("{a}:policy:{p}"), s.target.Account+":user:admin")}},
	})
}

// sameSet matches a JSON list with these texts in any order.
func sameSet(want ...string) func(string) bool {
	slices.Sort(want)
	return func(body string) bool {
		var got []string
		err := json.Unmarshal([]byte(body), &got)
		slices.Sort(got)
		return err == nil && slices.Equal(got, want)
	}
}

// listed matches a listing of resources with these ids in this order.
func (s *suite) listed(ids ...string) func(string) bool {
	return func(body string) bool {
		var list []struct{ ID string }
		err := json.Unmarshal([]byte(body), &list)
		got := []string{}
		for _, r := range list {
			got = append(got, r.ID)
		}
		for i := range ids {
			ids[i] = s.fill(ids[i])
		}
		return err == nil && slices.Equal(got, ids)
	}
}

func (s *suite) listing(t *testing.T) {
	variables := "GET /resources/{a}/variable"
	bad := func(message string) answer {
		return answer{status: 422, kind: asJSON, body: `{"error":{"code":"unprocessable_entity","message":"` + message + `"}}`}
	}
	limit := bad("'limit' contains an invalid value. 'limit' must be a positive integer.")
	list := func(ids ...string) answer { return answer{status: 200, kind: asJSON, match: s.listed(ids...)} }
	v := "{a}:variable:{p}/"
	s.runAll(t, []exchange{
		{name: "limit", as: alice, req: variables + "?limit=2", want: list(v+"a/b/c/d", v+"amp&x=1")},
		{name: "offset and limit", as: alice, req: variables + "?offset=3&limit=2", want: list(v+"bin", v+"colon:x")},
		{name: "offset alone gives ten", as: alice, req: variables + "?offset=3", want: list(v+"bin", v+"colon:x", v+"comma,one", v+"dot.txt",
			v+"empty", v+"hash#x", v+"js", v+"many", v+"pct%41x", v+"plus+x")},
		{name: "count", as: alice, req: variables + "?count=true", want: ok(asJSON, `{"count":22}`)},
		{name: "a limit cuts the count", as: alice, req: variables + "?count=true&limit=2", want: ok(asJSON, `{"count":2}`)},
		{name: "no rights", as: myhost, req: "GET /resources/{a}?count=true", want: ok(asJSON, `{"count":0}`)},
		{name: "another account", as: alice, req: "GET /resources/other", want: ok(asJSON, `[]`)},
		{name: "unknown kind", as: alice, req: "GET /resources/{a}/nosuchkind", want: nowhere},
		{name: "kind in the query", as: alice, req: "GET /resources/{a}?kind=user&count=true", want: ok(asJSON, `{"count":0}`)},
		{name: "kind in the path wins", as: alice, req: variables + "?kind=user&limit=1", want: list(v + "a/b/c/d")},
		{name: "search by part of a word", as: alice, req: variables + "?search=val", want: ok(asJSON, `[]`)},
		{name: "search by id", as: alice, req: variables + "?search={p}/val1", want: list(v + "val1")},
		{name: "search by annotation", as: alice, req: "GET /resources/{a}?search=hello", want: list(v + "annotated")},
		{name: "limit 0", as: alice, req: variables + "?limit=0", want: limit},
		{name: "limit -1", as: alice, req: variables + "?limit=-1", want: limit},
		{name: "limit abc", as: alice, req: variables + "?limit=abc", want: limit},
		{name: "limit 5000", as: alice, req: variables + "?limit=5000", want: bad("'Limit' parameter must not exceed 1000")},
		{name: "limit 10000", as: alice, req: variables + "?limit=10000&search=hello", want: list(v + "annotated")},
		{name: "offset -1", as: alice, req: variables + "?offset=-1", want: bad("'offset' contains an invalid value. 'offset' must be an integer greater than or equal to 0.")},
		{name: "as another", as: s.admin(), req: variables + "?role={a}:user:alice@{p}&count=true", want: ok(asJSON, `{"count":22}`)},
		{name: "acting as another", as: s.admin(), req: variables + "?acting_as={a}:user:alice@{p}&count=true", want: ok(asJSON, `{"count":22}`)},
		{name: "as oneself", as: alice, req: variables + "?role={a}:user:alice@{p}&limit=1", want: list(v + "a/b/c/d")},
		{name: "as someone not held", as: alice, req: variables + "?role={a}:user:bob@{p}&count=true", want: forbidden},
		{name: "as nobody", as: s.admin(), req: variables + "?role={a}:user:nobody&count=true", want: forbidden},
		{name: "owner without a kind", as: s.admin(), req: variables + "?owner=nobody", want: badArgument("Expected at least 2 tokens in nobody")},
		{name: "owner", as: alice, req: variables + "?owner={a}:policy:{p}&count=true", want: ok(asJSON, `{"count":22}`)},
	})
}

func (s *suite) roles(t *testing.T) {
	member := func(role, member string, own string) string {
		return `{"admin_option":` + own + `,"ownership":` + own + `,"role":"{a}:` + role + `","member":"{a}:` + member + `","policy":"{a}:policy:root"}`
	}
	const bobInStaff = "/roles/{a}/group/{p}%2Fstaff?members&member={a}:user:bob@{p}"
	owned := member("user:alice@{p}", "policy:{p}", "true")
	s.runAll(t, []exchange{
		{name: "role", as: s.admin(), req: "GET /roles/{a}/user/alice@{p}", want: answer{status: 200, kind: asJSON,
			match: contains(s.fill(`"id":"{a}:user:alice@{p}","policy":"{a}:policy:root","members":[` + owned + `]}`))}},
		{name: "memberships", as: s.admin(), req: "GET /roles/{a}/user/alice@{p}?memberships", want: ok(asJSON, `[]`)},
		{name: "all", as: s.admin(), req: "GET /roles/{a}/user/alice@{p}?all", want: ok(asJSON, `["{a}:user:alice@{p}"]`)},
		{name: "members", as: s.admin(), req: "GET /roles/{a}/group/{p}%2Fstaff?members", want: ok(asJSON,
			`[`+member("group:{p}/staff", "host:{p}/myhost", "false")+`,`+member("group:{p}/staff", "policy:{p}", "true")+`]`)},
		{name: "graph", as: s.admin(), req: "GET /roles/{a}/group/{p}%2Fstaff?graph", want: answer{status: 200, kind: asJSON,
			match: contains(s.fill(`{"parent":"{a}:group:{p}/staff","child":"{a}:host:{p}/myhost"},{"parent":"{a}:group:{p}/staff","child":"{a}:policy:{p}"}`))}},
		{name: "a member without a policy", as: s.admin(), req: "POST " + bobInStaff, want: answer{status: 204}},
		{name: "a second time", as: s.admin(), req: "POST " + bobInStaff, want: answer{status: 204}},
		{name: "it is there", as: s.admin(), req: "GET /roles/{a}/group/{p}%2Fstaff?members", want: answer{status: 200, kind: asJSON,
			match: contains(s.fill(`{"admin_option":false,"ownership":false,"role":"{a}:group:{p}/staff","member":"{a}:user:bob@{p}"}`))}},
		{name: "a member of an invisible role", as: alice, req: "POST " + bobInStaff, want: unknown("Group", "group", "{p}/staff")},
		{name: "a member that is nobody", as: s.admin(), req: "POST /roles/{a}/group/{p}%2Fstaff?members&member={a}:user:nobody", want: unknown("User", "user", "nobody")},
		{name: "a member less", as: s.admin(), req: "DELETE " + bobInStaff, want: answer{status: 204}},
		{name: "who is none", as: s.admin(), req: "DELETE " + bobInStaff, want: unknown("User", "user", "bob@{p}")},
		{name: "missing", as: s.admin(), req: "GET /roles/{a}/user/nobody", want: unknown("User", "user", "nobody")},
	})
}
