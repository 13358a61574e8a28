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
