package conformance

import (
	"encoding/json"
	"net/url"
	"path"
	"strings"
	"testing"
)

// yardThing is a resource in a listing.
type yardThing struct {
	ID, Owner, Policy string
	Permissions       []struct{ Privilege, Role, Policy string }
	Annotations       []struct{ Name, Value string }
	RestrictedTo      []string `json:"restricted_to"`
}

// list lists the yard's objects of a kind.
func (y *yardRun) list(t *testing.T, kind string) []yardThing {
	t.Helper()
	var all, out []yardThing
	y.get(t, "/resources/{a}/"+kind+"?limit=1000", &all)
	for _, r := range all {
		if strings.Contains(r.ID, path.Base(y.id)) {
			out = append(out, r)
		}
	}
	return out
}

func (y *yardRun) get(t *testing.T, what string, into any) {
	t.Helper()
	res, body := y.do(t, exchange{as: y.admin(), req: "GET " + what})
	if res.StatusCode != 200 {
		t.Fatalf("GET %s: status %d, body %q", what, res.StatusCode, body)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatal(err)
	}
}

// facts describes the state of the yard, with one sentence per fact.
func (y *yardRun) facts(t *testing.T) []string {
	t.Helper()
	var out []string
	say := func(parts ...string) {
		out = append(out, strings.ReplaceAll(strings.Join(parts, ""), y.target.Account+":", ""))
	}
	for _, kind := range []string{"group", "host", "layer", "policy", "user", "variable", "webservice"} {
		for _, r := range y.list(t, kind) {
			say(r.ID, " of ", r.Owner, ", by ", r.Policy)
			for _, p := range r.Permissions {
				say(r.ID, " lets ", p.Role, " ", p.Privilege, ", by ", p.Policy)
			}
			for _, a := range r.Annotations {
				say(r.ID, " notes ", a.Name, "=", a.Value)
			}
			for _, n := range r.RestrictedTo {
				say(r.ID, " admits ", n)
			}
			if kind == "group" || kind == "host" || kind == "layer" {
				y.members(t, kind, r.ID, say)
			}
		}
	}
	return out
}

func (y *yardRun) members(t *testing.T, kind, id string, say func(...string)) {
	t.Helper()
	var list []struct {
		Member    string
		Admin     bool `json:"admin_option"`
		Ownership bool
		Policy    string
	}
	y.get(t, "/roles/{a}/"+kind+"/"+url.PathEscape(strings.SplitN(id, ":", 3)[2])+"?members", &list)
	for _, m := range list {
		how := ""
		switch {
		case m.Ownership:
			how = " as owner"
		case m.Admin:
			how = " and may grant it"
		}
		say(id, " has ", m.Member, how, ", by ", m.Policy)
	}
}
