package conformance

import (
	"encoding/json"
	"strings"
	"testing"
)

// hostFactories checks that a new host joins the layers of its factory, and that
// the factory is a member of them too.
func (s *suite) hostFactories(t *testing.T) {
	s.load(t, branch, "- !layer made\n- !host-factory { id: maker, layers: [ !layer made ] }\n"+
		"- !permit { role: !layer made, privileges: [ read ], resource: !variable val1 }\n")
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	res, body := s.do(t, exchange{as: s.admin(), req: "POST /host_factory_tokens", header: form,
		body: "expiration=2099-01-01T00:00:00%2B00:00&host_factory={a}:host_factory:{p}/maker"})
	s.check(t, answer{status: 200, kind: asJSON, match: contains(`"expiration":"2099-01-01T00:00:00Z"`)}, res, body)
	var tokens []struct{ Token string }
	if err := json.Unmarshal([]byte(body), &tokens); err != nil || len(tokens) != 1 {
		t.Fatalf("tokens %q, %v", body, err)
	}
	form["Authorization"] = `Token token="` + tokens[0].Token + `"`
	member := func(what string) string {
		return `{"admin_option":false,"ownership":false,"role":"{a}:layer:{p}/made","member":"{a}:` + what + `"`
	}
	s.runAll(t, []exchange{
		{name: "host", req: "POST /host_factories/hosts", header: form, body: "id={p}/made", want: answer{status: 201, kind: asJSON,
			match: contains(s.fill(`"id":"{a}:host:{p}/made","owner":"{a}:host_factory:{p}/maker"`), `"api_key":"`)}},
		{name: "members of the layer", as: s.admin(), req: "GET /roles/{a}/layer/{p}%2Fmade?members", want: answer{status: 200, kind: asJSON,
			match: contains(s.fill(member("host_factory:{p}/maker")), s.fill(member("host:{p}/made")))}},
		{name: "memberships of the factory", as: s.admin(), req: "GET /roles/{a}/host_factory/{p}%2Fmaker?memberships", want: answer{status: 200, kind: asJSON,
			match: contains(s.fill(member("host_factory:{p}/maker")))}},
		{name: "check as the factory", as: s.admin(), req: "GET /resources/{a}/variable/{p}%2Fval1?check=true&privilege=read&role={a}:host_factory:{p}/maker",
			want: answer{status: 204}},
		{name: "roles that are permitted", as: s.admin(), req: "GET /resources/{a}/variable/{p}%2Fval1?permitted_roles=true&privilege=read",
			want: answer{status: 200, kind: asJSON, match: contains(s.fill(`"{a}:host_factory:{p}/maker"`), s.fill(`"{a}:host:{p}/made"`))}},
		{name: "a dry run does not list it", as: s.admin(), req: "POST /policies/{a}/policy/{p}?dryRun=true",
			body: "- !host-factory { id: other, layers: [ !layer made ] }\n", want: answer{status: 200, kind: asJSON,
				match: func(body string) bool { return !strings.Contains(body, `"type":"host_factory"`) }}},
	})
}
