package conjurd

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

type valuesAnswer struct {
	Secrets []valueJSON
	Code    string
	Message string
}

func (v valueJSON) String() string {
	if v.Value == nil {
		return fmt.Sprintf("%s %d", v.ID, v.Status)
	}
	return fmt.Sprintf("%s %d %q", v.ID, v.Status, *v.Value)
}

func TestValuesAnswerPerVariable(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, appPolicy)
	set(t, s, "app/a", "A")
	set(t, s, "app/b", "\xff")
	set(t, s, "app/hidden", "H")
	set(t, s, "app/readonly", "R")
	body := `{"ids":["app/a","app/b","app/unset","app/hidden","app/readonly","app/nope"]}`
	for _, path := range []string{"/secrets/values", "/secrets/dev/values"} {
		w := send(t, s, request{method: "POST", path: path, as: "host/app/web", body: body, header: map[string]string{"Accept": v2}})
		want := []string{`app/a 200 "A"`, "app/b 406", "app/unset 404", "app/hidden 404", "app/readonly 403", "app/nope 404"}
		if got := texts(decode[valuesAnswer](t, w).Secrets); w.Code != 200 || !slices.Equal(got, want) || w.Header().Get("Content-Type") != v2 {
			t.Errorf("%s: status %d, %q", path, w.Code, got)
		}
	}
	w := send(t, s, request{method: "POST", path: "/secrets/values", as: "host/app/web", body: `{"ids":["app/b"]}`,
		header: map[string]string{"Accept": v2, "Accept-Encoding": "base64"}})
	if got := texts(decode[valuesAnswer](t, w).Secrets); !slices.Equal(got, []string{`app/b 200 "/w==\n"`}) || w.Header().Get("Content-Encoding") != "base64" {
		t.Errorf("in base64: %q", got)
	}
}

func texts(list []valueJSON) []string {
	var out []string
	for _, v := range list {
		out = append(out, v.String())
	}
	return out
}

func TestValuesLimits(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, appPolicy)
	many := func(n int) string { return `{"ids":[` + strings.Repeat(`"x",`, n-1) + `"x"]}` }
	for _, c := range []struct {
		name, body, accept string
		status             int
	}{
		{"250 ids", many(250), v2, 200}, {"251 ids", many(251), v2, 422}, {"no ids", `{"ids":[]}`, v2, 422},
		{"no JSON", `x`, v2, 400}, {"no Accept header", many(1), "", 400},
	} {
		w := send(t, s, request{method: "POST", path: "/secrets/values", as: "admin", body: c.body, header: map[string]string{"Accept": c.accept}})
		if w.Code != c.status {
			t.Errorf("%s: status %d", c.name, w.Code)
		}
		if got := decode[valuesAnswer](t, w); c.status != 200 && (got.Code != fmt.Sprint(c.status) || got.Message == "") {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestBatchNamesAllCulprits(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, appPolicy)
	set(t, s, "app/a", "A")
	w := send(t, s, request{method: "GET", as: "host/app/web",
		path: "/secrets?variable_ids=dev:variable:app/readonly,dev:variable:app/unset,dev:variable:app/a,dev:variable:app/nope,dev:variable:app/hidden"})
	want := `{"error":{"code":"not_found","message":"CONJ00076E Variable dev:variable:app/nope is empty or not found.","details":{"variables":` +
		`["dev:variable:app/nope","dev:variable:app/unset","dev:variable:app/readonly","dev:variable:app/hidden"]}}}`
	if w.Code != http.StatusNotFound || w.Body.String() != want {
		t.Errorf("status %d, body %s", w.Code, w.Body)
	}
}

func TestStrictHasNoEnhancements(t *testing.T) {
	s := open(t, Options{Strict: true})
	loadRoot(t, s, appPolicy)
	for _, q := range []request{
		{method: "POST", path: "/secrets/values", header: map[string]string{"Accept": v2}},
		{method: "POST", path: "/secrets/dev/values", header: map[string]string{"Accept": v2}},
		{method: "PUT", path: "/secrets/dev/values"},
		{method: "GET", path: "/health"},
	} {
		q.as, q.body = "admin", "{}"
		if w := send(t, s, q); w.Code != http.StatusNotFound || w.Body.Len() > 0 {
			t.Errorf("%s %s: status %d", q.method, q.path, w.Code)
		}
	}
	w := send(t, s, request{method: "GET", as: "host/app/web", path: "/secrets?variable_ids=dev:variable:app/nope,dev:variable:app/hidden"})
	if w.Code != http.StatusForbidden {
		t.Errorf("a batch: status %d", w.Code)
	}
}
