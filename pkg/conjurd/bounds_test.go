package conjurd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
