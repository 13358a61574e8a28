package conjurd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// TestMembersTakeARightOverThePolicy that declared the role, and sight of the role.
func TestMembersTakeARightOverThePolicy(t *testing.T) {
	s := open(t, Options{Strict: true})
	loadRoot(t, s, `
- !user maker
- !user changer
- !user reader
- !user blind
- !policy
  id: dev
  body:
  - !group ops
- !permit { role: !user maker, privileges: [ create ], resource: !policy root }
- !permit { role: !user changer, privileges: [ update ], resource: !policy root }
- !permit { role: !user changer, privileges: [ create, update ], resource: !policy dev }
- !permit { role: !user maker, privileges: [ read ], resource: !group dev/ops }
- !permit { role: !user changer, privileges: [ read ], resource: !group dev/ops }
- !permit { role: !user reader, privileges: [ read ], resource: !group dev/ops }
- !permit { role: !user blind, privileges: [ create, update ], resource: !policy root }
`)
	const member = "/roles/dev/group/dev%2Fops?members&member=dev:user:reader"
	for _, c := range []struct {
		as, method string
		want       int
	}{
		{"blind", "POST", 404}, {"reader", "POST", 403}, {"changer", "POST", 403}, {"maker", "POST", 204},
		{"blind", "DELETE", 404}, {"reader", "DELETE", 403}, {"maker", "DELETE", 403}, {"changer", "DELETE", 204}, {"changer", "DELETE", 404},
	} {
		if w := send(t, s, request{method: c.method, path: member, as: c.as}); w.Code != c.want {
			t.Errorf("%s by %s: status %d, want %d", c.method, c.as, w.Code, c.want)
		}
	}
	if w := send(t, s, request{method: "POST", path: "/roles/dev/group/dev%2Fops", as: "maker"}); w.Code != http.StatusNotFound {
		t.Errorf("without what to do: status %d", w.Code)
	}
}

const graphPolicy = `
- !user chief
- !user reader
- !user other
- !group admins
- !group staff
- !policy { id: pol, owner: !group admins }
- !grant { role: !group admins, member: !user chief }
- !grant { role: !group staff, member: !group admins }
- !grant { role: !group staff, members: [ !user reader, !user other ] }
- !user viewer
- !permit { role: !user viewer, privileges: [ read ], resource: !group admins }
- !layer red
- !grant { role: !layer red, member: !user reader }
- !grant { role: !group admins, member: !user reader }
`

// TestRoleParameters follows the features member_list, memberships, role_graph and
// role_graph_visibility_check of Conjur 1.24.0, and its source.
func TestRoleParameters(t *testing.T) {
	s := open(t, Options{Strict: true})
	loadRoot(t, s, graphPolicy)
	const chief, reader = "dev:user:chief", "dev:user:reader"
	const in = "dev:group:staff "
	staff := []string{in + "dev:group:admins", in + "dev:user:admin", in + "dev:user:other", in + reader}
	for _, c := range []struct {
		as, path string
		want     any // a status, a count, or the texts that the lists consist of
	}{
		{"admin", "group/staff?members", staff},
		{"admin", "group/staff?members&limit=2", staff[:2]},
		{"admin", "group/staff?members&limit=2&offset=1", staff[1:3]},
		{"admin", "group/staff?members&offset=3", staff[3:]},
		{"admin", "group/staff?members&offset=9", []string{}},
		{"admin", "group/staff?members&offset=x&limit=1", staff[:1]},
		{"admin", "group/staff?members&limit=abc", 500},
		{"admin", "group/staff?members&limit=0", 500},
		{"admin", "group/staff?members&offset=-1", 500},
		{"admin", "group/staff?members&count=true&limit=1", map[string]int{"count": 4}},
		{"admin", "group/staff?members&count&kind=group", map[string]int{"count": 1}},
		{"admin", "group/staff?members&search=other", []string{in + "dev:user:other"}},
		{"admin", "group/staff?members&search=oth", []string{}},
		{"admin", "group/staff?members&search=", []string{}},
		{"admin", "group/staff?members&kind=group", staff[:1]},
		{"admin", "group/staff?members&kind[]=group&kind[]=layer", staff[:1]},
		{"admin", "group/staff?members&kind=user&kind=group", staff[:1]},
		{"admin", "user/reader?memberships", []string{"dev:group:admins " + reader, "dev:group:staff " + reader, "dev:layer:red " + reader}},
		{"admin", "user/reader?memberships&kind=layer", []string{"dev:layer:red " + reader}},
		{"admin", "user/reader?memberships&search=red", []string{"dev:layer:red " + reader}},
		{"admin", "user/reader?memberships&count=true", map[string]int{"count": 3}},
		{"admin", "user/reader?memberships&filter=layer:red", []string{}},
		{"admin", "user/reader?memberships&filter=user:reader&kind=layer", []string{"dev:layer:red " + reader}},
		{"admin", "user/reader?all&filter[]=dev:layer:red&filter[]=group:staff&filter[]=user:nobody", []string{"dev:group:staff", "dev:layer:red"}},
		{"admin", "user/reader?all&filter=layer:red&count", map[string]int{"count": 1}},
		{"admin", "user/reader?all&count=true", map[string]int{"count": 5}},
		{"admin", "user/reader?all&filter=nokind", 422},
		{"admin", "user/reader?memberships&filter[]=", 422},
		{"admin", "policy/pol?graph&members", []string{"dev:group:admins dev:user:admin", "dev:group:admins " + chief, "dev:group:admins " + reader,
			"dev:policy:pol dev:group:admins", "dev:user:admin dev:user:admin", chief + " dev:user:admin", reader + " dev:user:admin"}},
		{"chief", "policy/pol?graph", []string{"dev:policy:pol dev:group:admins"}},
		{"other", "policy/pol?graph", 404},
		{"viewer", "group/admins?graph", []string{"dev:group:admins dev:user:admin", "dev:group:admins " + chief, "dev:group:admins " + reader}},
		{"chief", "group/admins?members", 404}, // to have a role is not to see it
		{"chief", "user/chief?all", 404},
	} {
		w := send(t, s, request{method: "GET", path: "/roles/dev/" + c.path, as: c.as})
		if status, ok := c.want.(int); ok {
			if w.Code != status {
				t.Errorf("%s by %s: status %d, want %d", c.path, c.as, w.Code, status)
			}
			continue
		}
		if got, want := rolesIn(t, w), c.want; w.Code != 200 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s by %s: status %d, %v, want %v", c.path, c.as, w.Code, got, want)
		}
	}
}

// rolesIn reads an answer about roles: a count, ids, or memberships or edges as "role
// member".
func rolesIn(t *testing.T, w *httptest.ResponseRecorder) any {
	t.Helper()
	if strings.HasPrefix(w.Body.String(), "{") {
		return decode[map[string]int](t, w)
	}
	out := []string{}
	for _, item := range decode[[]any](t, w) {
		switch item := item.(type) {
		case string:
			out = append(out, item)
		case map[string]any:
			if item["parent"] != nil {
				item["role"], item["member"] = item["parent"], item["child"]
			}
			out = append(out, fmt.Sprint(item["role"], " ", item["member"]))
		}
	}
	return out
}

// TestListingParameters checks what the genuine server refuses or reads otherwise.
func TestListingParameters(t *testing.T) {
	s := open(t, Options{Strict: true})
	loadRoot(t, s, "- !group team\n- !user al\n- !grant { role: !group team, member: !user al }\n- !variable { id: a, owner: !group team }\n- !variable { id: b, owner: !user al }\n"+
		"- !user eve\n- !permit { role: !user eve, privileges: [ read ], resource: !variable a }\n")
	for _, c := range []struct {
		as, path, body string
		status         int
	}{
		{"admin", "/resources/dev/variable?owner=user:al&count=true", `{"count":2}`, 200},
		{"admin", "/resources/dev/variable?owner=group:team&count=true", `{"count":1}`, 200},
		{"admin", "/resources?kind=variable&owner=user:al&count=true", `{"count":2}`, 200},
		{"admin", "/resources/dev/variable?owner=user:nobody", "", 404},
		{"admin", "/resources/dev/variable?limit=%2B3", "", 422},
		{"admin", "/resources/dev/variable?limit=03", "", 422},
		{"admin", "/resources/dev/variable?offset=01", "", 422},
		{"eve", "/resources/dev/variable/a?check&privilege=execute", "", 404},
		{"eve", "/resources/dev/variable/a?check=1&privilege=execute", "", 404},
		{"eve", "/resources/dev/variable/a?check=true&privilege=read&privilege=execute", "", 404},
		{"eve", "/resources/dev/variable/a?check=false&privilege=read", "", 204},
		{"eve", "/resources/dev/variable/a?permitted_roles&permission=update", `["dev:group:team","dev:user:admin","dev:user:al"]`, 200},
	} {
		w := send(t, s, request{method: "GET", path: c.path, as: c.as})
		if w.Code != c.status || c.body != "" && w.Body.String() != c.body {
			t.Errorf("%s by %s: status %d, %s", c.path, c.as, w.Code, w.Body)
		}
	}
}
