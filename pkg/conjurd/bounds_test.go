package conjurd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// untouched is a body that must not be read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

// Who has no right over what a request is about does not get a body read.
func TestRightsComeBeforeBodies(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, appPolicy+"- !host nobody\n- !permit { role: !host nobody, privileges: [read, execute], resource: !variable app/a }\n")
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"PUT", "/secrets/dev/values", 403},
		{"POST", "/secrets/dev/variable/app/a", 403},
		{"POST", "/secrets/dev/variable/app/b", 404},
		{"POST", "/secrets/dev/variable/nope", 404},
		{"POST", "/policies/dev/policy/root", 404},
		{"PUT", "/policies/dev/policy/app", 404},
	} {
		r := httptest.NewRequest(c.method, c.path, untouched{t})
		r.Header.Set("Authorization", tokenFor(t, s, "host/nobody"))
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s %s: status %d", c.method, c.path, w.Code)
		}
	}
}

// What is sent for many ids is small, whatever is wrong with them.
func TestAnswersAboutManyIDsAreBounded(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, appPolicy)
	items := func(n int) string {
		return `{"secrets":[` + strings.Repeat(`,{"id":"x","value":"y"}`, n)[1:] + `]}`
	}
	long := `{"secrets":[{"id":"` + strings.Repeat("x", 1<<20) + `","value":"y"}]}`
	for _, c := range []struct {
		q      request
		status int
		want   string
	}{
		{request{method: "PUT", path: "/secrets/dev/values", body: items(1_000_000)}, 422, "secrets must have between 1 and 10000 values"},
		{request{method: "PUT", path: "/secrets/dev/values", body: items(maxSet)}, 404, "because of 10000 variables"},
		{request{method: "PUT", path: "/secrets/dev/values", body: long}, 404, "because of 1 variables"},
	} {
		c.q.as = "admin"
		w := send(t, s, c.q)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) || w.Body.Len() > 64<<10 {
			t.Errorf("%s %.60s: status %d, %d bytes: %.200s", c.q.path, c.q.body, w.Code, w.Body.Len(), w.Body)
		}
	}
}

// TestBoundsOfRequests: what a client may send, in bytes and in numbers.
func TestBoundsOfRequests(t *testing.T) {
	s := open(t, Options{MaxValue: 1000, MaxFailedLogins: -1})
	loadRoot(t, s, appPolicy+"- !layer web\n- !host-factory { id: hf, layers: [ !layer web ] }\n")
	const tokens = "/host_factory_tokens?host_factory=dev:host_factory:hf&expiration=2099-01-01&count="
	made := decode[[]struct{ Token string }](t, send(t, s, request{method: "POST", path: tokens + "1", as: "admin"}))
	factory := map[string]string{"Authorization": `Token token="` + made[0].Token + `"`}
	x := func(n int) string { return strings.Repeat("x", n) }
	pad := func(text string, n int) string { return text + strings.Repeat(" ", n-len(text)) }
	get := func(path string) request { return request{method: "GET", path: path, as: "admin"} }
	for what, c := range map[string]struct {
		bound          int
		within, beyond int // status
		request        func(n int) request
	}{
		"a path":  {8192, 404, 400, func(n int) request { return get("/" + x(n-1)) }},
		"a query": {10_240, 200, 400, func(n int) request { return get("/whoami?" + x(n)) }},
		"a field of the header": {80 << 10, 200, 400, func(n int) request {
			return request{method: "GET", path: "/whoami", as: "admin", header: map[string]string{"X": x(n)}}
		}},
		"a value": {1000, 201, 413, func(n int) request {
			return request{method: "POST", path: "/secrets/dev/variable/app/a", as: "admin", body: x(n)}
		}},
		"a key": {64 << 10, 401, 400, func(n int) request {
			return request{method: "POST", path: "/authn/dev/admin/authenticate", body: x(n)}
		}},
		"a policy": {32 << 20, 201, 413, func(n int) request {
			return request{method: "POST", path: "/policies/dev/policy/root", as: "admin", body: pad("- !group g\n#", n)}
		}},
		"a form": {64 << 10, 422, 413, func(n int) request {
			return request{method: "POST", path: "/host_factories/hosts", body: x(n), header: factory}
		}},
		"the id of a host": {2048, 201, 422, func(n int) request {
			return request{method: "POST", path: "/host_factories/hosts", body: "id=" + x(n), header: factory}
		}},
		"factory tokens": {100, 200, 422, func(n int) request {
			return request{method: "POST", path: tokens + strconv.Itoa(n), as: "admin"}
		}},
		"values to set": {10_000, 404, 422, func(n int) request {
			return request{method: "PUT", path: "/secrets/dev/values", as: "admin", body: `{"secrets":[{"id":"x"}` + strings.Repeat(`,{"id":"x"}`, n-1) + `]}`}
		}},
		"bytes of values to set": {64 << 20, 404, 413, func(n int) request {
			return request{method: "PUT", path: "/secrets/dev/values", as: "admin", body: pad(`{"secrets":[{"id":"x"}]}`, n)}
		}},
		"a listing": {1000, 200, 422, func(n int) request { return get("/resources/dev/variable?limit=" + strconv.Itoa(n)) }},
		"no factory tokens, from below": {-1, 422, 200, func(n int) request {
			return request{method: "POST", path: tokens + strconv.Itoa(n+1), as: "admin"}
		}},
		"an empty listing, from below":    {0, 422, 200, func(n int) request { return get("/resources/dev/variable?limit=" + strconv.Itoa(n)) }},
		"an offset, from below":           {-1, 422, 200, func(n int) request { return get("/resources/dev/variable?offset=" + strconv.Itoa(n)) }},
		"no members, from below":          {0, 500, 200, func(n int) request { return get("/roles/dev/layer/web?members&limit=" + strconv.Itoa(n)) }},
		"an offset of members from below": {-1, 500, 200, func(n int) request { return get("/roles/dev/layer/web?members&offset=" + strconv.Itoa(n)) }},
	} {
		for _, n := range []int{c.bound - 1, c.bound, c.bound + 1} {
			want := c.within
			if n > c.bound {
				want = c.beyond
			}
			if w := send(t, s, c.request(n)); w.Code != want {
				t.Errorf("%s, the bound%+d: status %d, want %d: %.200s", what, n-c.bound, w.Code, want, w.Body)
			}
		}
	}
	if w := send(t, s, get("/resources/dev/variable?limit=10000")); w.Code != 200 {
		t.Errorf("the older limit of a listing: status %d", w.Code)
	}
}

// TestBoundsOfServer: a value that a program sets, the keys of a data file, the parts of a
// Pod's id, and the depth of a policy.
func TestBoundsOfServer(t *testing.T) {
	s := open(t, Options{MaxValue: 1000})
	loadRoot(t, s, "- !policy { id: a, body: [ !policy { id: b, body: [ !variable c ] } ] }\n- !variable v\n")
	for less := -1; less <= 1; less++ {
		if err := s.Set(t.Context(), "v", make([]byte, 1000+less)); (err == nil) != (less <= 0) {
			t.Errorf("a value of the bound%+d: %v", less, err)
		}
		id := strings.Join([]string{"apps", "shop", "service_account", "web"}[1-less:], "/")
		if _, err := restrictionsOfID(id); (err == nil) != (less >= 0) {
			t.Errorf("the id %s: %v", id, err)
		}
		// The policies a and a/b have 2 resources, with 1 slash at most, and a/b/c has 2.
		q := request{method: "GET", path: fmt.Sprintf("/policies/dev/policy/a?depth=%d&limit=2", 1+less), as: "admin"}
		if w := send(t, s, q); (w.Code == http.StatusOK) != (less <= 0) {
			t.Errorf("the depth%+d: status %d, %s", less, w.Code, w.Body)
		}
	}
	path := filepath.Join(t.TempDir(), "key")
	if _, err := DataKey(path, true); err != nil {
		t.Fatal(err)
	}
	for keys, want := range []error{nil, ErrRekeying} {
		rekeying, err := Rekeying(path)
		if added := AddDataKey(path); err != nil || rekeying != (keys > 0) || !errors.Is(added, want) {
			t.Errorf("%d keys were added: %t, %v, %v", keys, rekeying, err, added)
		}
	}
}

// TestBoundsOfTexts in answers, and of blank values.
func TestBoundsOfTexts(t *testing.T) {
	for less := -1; less <= 1; less++ {
		long := strings.Repeat("x", maxClip+less)
		if got := clip(long); (got == long) != (less <= 0) || len(got) > maxClip+len("…") {
			t.Errorf("a text of the bound%+d: %d bytes", less, len(got))
		}
		for _, lines := range []int{1, 2} { // of 45 bytes
			if text := encodeLines(make([]byte, 45*lines+less)); strings.Count(text, "\n") != lines+max(less, 0) || strings.Contains(text, "\n\n") {
				t.Errorf("%d lines%+d: %q", lines, less, text)
			}
		}
	}
	for c := range 0x21 {
		if blank := isBlank([]byte{byte(c)}); blank != strings.ContainsRune("\t\n\v\f\r ", rune(c)) {
			t.Errorf("%#x is blank: %t", c, blank)
		}
	}
}

// ending is a context that ends when it has been looked at so often.
type ending struct {
	context.Context
	left atomic.Int64
}

func (e *ending) Err() error {
	if e.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A load whose context ends stops there, and leaves nothing.
func TestLoadEndsWithItsContext(t *testing.T) {
	s := open(t, Options{})
	var text bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&text, "- !variable v%d\n", i)
	}
	for _, looks := range []int64{0, 1, 10, 1000, 3500} {
		ctx := &ending{Context: t.Context()}
		ctx.left.Store(looks)
		_, err := s.LoadPolicy(ctx, Update, "root", bytes.NewReader(text.Bytes()))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after %d looks: %v", looks, err)
		}
		if left := ctx.left.Load(); left < -10 {
			t.Errorf("after %d looks it goes on, with %d more", looks, -left)
		}
	}
	w := send(t, s, request{method: "GET", path: "/resources/dev/variable?count=true", as: "admin"})
	if w.Code != http.StatusOK || w.Body.String() != `{"count":0}` {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
