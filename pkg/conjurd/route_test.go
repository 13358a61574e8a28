package conjurd

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMatch(t *testing.T) {
	s := &Server{}
	for _, c := range []struct {
		method, path string
		want         string // pattern
	}{
		{"GET", "/", ""}, {"GET", "//", ""}, {"GET", "/secrets", "secrets"}, {"HEAD", "/secrets/", "secrets"},
		{"GET", "/secrets/dev/variable/a", "secrets/:account/variable/*id"},
		{"GET", "/secrets//dev/variable/a//b/", "secrets/:account/variable/*id"},
		{"PUT", "/secrets/dev/values", "secrets/:account/values"}, {"POST", "/secrets/dev/values", "none"},
		{"GET", "/secrets/dev/variable", "none"}, {"GET", "/secrets/dev/variable/", "none"}, {"GET", "/secrets/dev", "none"},
		{"POST", "/authn/dev/host%2Fa/authenticate", "authn/:account/:login/authenticate"},
		{"POST", "/authn/dev/host/a/authenticate", "none"}, {"DELETE", "/secrets", "none"},
	} {
		got := "none"
		if rt := s.match(c.method, splitPath(c.path)); rt != nil {
			got = strings.Join(rt.pattern, "/")
		}
		if got != c.want {
			t.Errorf("%s %s goes to %q instead of %q", c.method, c.path, got, c.want)
		}
	}
}

func TestClientIP(t *testing.T) {
	for _, c := range []struct{ peer, forwarded, want string }{
		{"1.2.3.4:5", "", "1.2.3.4"}, {"1.2.3.4:5", "9.9.9.9", "1.2.3.4"}, {"[::ffff:1.2.3.4]:5", "", "1.2.3.4"},
		{"127.0.0.1:5", "9.9.9.9", "9.9.9.9"}, {"[::1]:5", "6.6.6.6, 9.9.9.9, 127.0.0.1", "9.9.9.9"},
		{"127.0.0.1:5", "nonsense", "127.0.0.1"}, {"127.0.0.1:5", "9.9.9.9, nonsense", "127.0.0.1"}, {"pipe", "", "0.0.0.0"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.peer
		r.Header.Set("X-Forwarded-For", c.forwarded)
		if got := (&call{r: r}).clientIP().String(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// FuzzPath looks for paths and queries that break the reading of ids, and
// checks that what is let through is what was encoded.
func FuzzPath(f *testing.F) {
	f.Add("app/password", "dev:variable:a,dev:variable:b")
	f.Add("uni/ñandú/日本", "dev:variable:sp ace")
	f.Add("a%41+b", "%2C,;&=+")
	f.Add("\xff\x00", "\x00")
	f.Add("//", ",,")
	s := &Server{}
	f.Fuzz(func(t *testing.T, id, list string) {
		if id == "" {
			return
		}
		target, err := url.Parse("/secrets/dev/variable/" + url.PathEscape(id) + "?variable_ids=" + url.QueryEscape(list))
		if err != nil {
			t.Fatal(err)
		}
		c := &call{r: &http.Request{Method: "GET", URL: target}}
		parts := splitPath(target.EscapedPath())
		rt := s.match("GET", parts)
		if rt == nil {
			t.Fatalf("no route for %q", target)
		}
		_, ok := c.decode(rt, parts)
		fine := utf8.ValidString(id) && utf8.ValidString(list) && !strings.ContainsRune(id+list, 0)
		if ok != fine {
			t.Fatalf("%q, %q: let through: %t", id, list, ok)
		}
		if ok && c.vars["id"] != id {
			t.Errorf("id %q became %q", id, c.vars["id"])
		}
		if !ok {
			return
		}
		if ids, ok := batchIDs(c); ok {
			seen := map[string]bool{}
			for _, id := range ids {
				if id == "" || seen[id] || !slices.Contains(strings.Split(list, ","), id) {
					t.Errorf("%q gives %q", list, ids)
				}
				seen[id] = true
			}
		}
	})
}

// FuzzRawPath sends any path and query to the handler.
func FuzzRawPath(f *testing.F) {
	f.Add("GET", "/secrets/dev/variable/a%2Fb", "version=1")
	f.Add("POST", "/authn/dev/host%2Fx/authenticate", "")
	f.Add("GET", "/resources/dev/variable/%ff", "check=true&privilege=execute")
	f.Add("PUT", "/authn/dev/api_key", "role=user:x")
	f.Add("GET", "/%zz", ";")
	srv := open(f, Options{})
	auth := tokenFor(f, srv, "admin")
	f.Fuzz(func(t *testing.T, method, path, query string) {
		target, err := url.ParseRequestURI("/" + strings.TrimPrefix(path, "/") + "?" + query)
		if err != nil || strings.ContainsAny(method, " \r\n") || method == "PUT" || method == "PATCH" {
			return // the last two would rotate the key or replace the root policy
		}
		r := &http.Request{Method: method, URL: target, Header: http.Header{"Authorization": {auth}}, Body: http.NoBody, RemoteAddr: "127.0.0.1:1"}
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s %s: status %d", method, target, w.Code)
		}
	})
}

// TestV2RoutesSayThatTheyAreAbsent, so that their clients need not guess.
func TestV2RoutesSayThatTheyAreAbsent(t *testing.T) {
	s := open(t, Options{Strict: true})
	accept := map[string]string{"Accept": v2}
	for _, at := range []string{
		"POST /branches/dev", "GET /branches/dev", "GET /branches/dev/a/b", "PATCH /branches/dev/a", "DELETE /branches/dev/a",
		"POST /groups/dev/a/b/members", "DELETE /groups/dev/a/members/user/bob%40x",
		"GET /authenticators/dev", "POST /authenticators/dev", "GET /authenticators/dev/jwt/x", "PATCH /authenticators/dev/jwt/x", "DELETE /authenticators/dev/jwt/x",
	} {
		method, path, _ := strings.Cut(at, " ")
		w := send(t, s, request{method: method, path: path, as: "admin", header: accept})
		if got := decode[struct{ Code, Message string }](t, w); w.Code != 501 || got.Code != "501" || !strings.Contains(got.Message, "conjurd does not serve") || w.Header().Get("Content-Type") != v2 {
			t.Errorf("%s: status %d, %s", at, w.Code, w.Body)
		}
		if w := send(t, s, request{method: method, path: path, header: accept}); w.Code != 401 {
			t.Errorf("%s without a token: status %d", at, w.Code)
		}
		if w := send(t, s, request{method: method, path: path, as: "admin"}); w.Code != 400 || !strings.Contains(w.Body.String(), "CONJ00194W") {
			t.Errorf("%s without the media type: status %d, %s", at, w.Code, w.Body)
		}
	}
}
