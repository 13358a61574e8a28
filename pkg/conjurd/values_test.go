package conjurd

import (
	"net/http"
	"testing"
)

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

func TestWhoReadsAVariable(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, `
- !host permitted
- !host member
- !host updater
- !host stranger
- !group owners
- !grant { role: !group owners, member: !host member }
- !variable { id: v, owner: !group owners, mime_type: text/x-v }
- !variable { id: plain, owner: !group owners, annotations: { about: conjur/mime_type } }
- !permit { role: !host permitted, privileges: [execute], resources: [ !variable v, !variable plain ] }
- !permit { role: !host updater, privileges: [update], resources: [ !variable v, !variable plain ] }
`)
	set(t, s, "v", "value")
	set(t, s, "plain", "value")
	for _, c := range []struct {
		host          string
		single, batch int
	}{
		{"permitted", 200, 200}, {"member", 200, 200}, {"updater", 403, 404}, {"stranger", 404, 404},
	} {
		for id, kind := range map[string]string{"v": "text/x-v", "plain": typeBytes} {
			w := send(t, s, request{method: "GET", as: "host/" + c.host, path: "/secrets/dev/variable/" + id})
			if w.Code != c.single || w.Code == 200 && (w.Body.String() != "value" || w.Header().Get("Content-Type") != kind) {
				t.Errorf("%s reads %s: status %d, %s", c.host, id, w.Code, w.Header().Get("Content-Type"))
			}
			w = send(t, s, request{method: "GET", as: "host/" + c.host, path: "/secrets?variable_ids=dev:variable:" + id})
			if w.Code != c.batch {
				t.Errorf("%s reads a batch with %s: status %d", c.host, id, w.Code)
			}
		}
	}
}
