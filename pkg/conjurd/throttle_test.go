package conjurd

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestFailedLoginsAreSlowedDown(t *testing.T) {
	now := time.Now()
	s := open(t, Options{MaxFailedLogins: 3, Now: func() time.Time { return now }})
	loadRoot(t, s, "- !user bob\n")
	key, err := s.APIKey(context.Background(), "admin")
	if err != nil {
		t.Fatal(err)
	}
	try := func(login, body, from string) (int, string) {
		t.Helper()
		w := send(t, s, request{method: "POST", path: "/authn/dev/" + login + "/authenticate", body: body, from: from})
		return w.Code, w.Header().Get("Retry-After")
	}
	for i := range 3 {
		if status, _ := try("admin", "wrong", ""); status != http.StatusUnauthorized {
			t.Errorf("failure %d: status %d", i, status)
		}
	}
	if status, retry := try("admin", key, ""); status != http.StatusTooManyRequests || retry != "2" {
		t.Errorf("after three: status %d, Retry-After %q", status, retry)
	}
	if w := send(t, s, request{method: "GET", path: "/authn/dev/login", header: map[string]string{"Authorization": "Basic YWRtaW46eA=="}}); w.Code != 429 {
		t.Errorf("a login: status %d", w.Code)
	}
	// Others are not held up: not from elsewhere, and not for another login.
	if status, _ := try("admin", key, "10.0.0.1"); status != 200 {
		t.Errorf("from elsewhere: status %d", status)
	}
	if status, _ := try("bob", "wrong", ""); status != 401 {
		t.Errorf("another login: status %d", status)
	}
	now = now.Add(time.Second)
	if status, _ := try("admin", "wrong", ""); status != 401 {
		t.Errorf("after the wait: status %d", status)
	}
	if status, retry := try("admin", key, ""); status != 429 || retry != "3" {
		t.Errorf("the wait does not double: status %d, Retry-After %q", status, retry)
	}
	now = now.Add(2 * time.Second)
	if status, _ := try("admin", key, ""); status != 200 {
		t.Errorf("after the second wait: status %d", status)
	}
	for range 3 {
		if status, _ := try("admin", "wrong", ""); status != 401 {
			t.Errorf("a success does not forget the failures: status %d", status)
		}
	}
}

func TestThrottleLimits(t *testing.T) {
	for _, o := range []Options{{MaxFailedLogins: -1}, {Strict: true}} {
		s := open(t, o)
		for range 30 {
			if w := send(t, s, request{method: "POST", path: "/authn/dev/admin/authenticate", body: "x"}); w.Code != 401 {
				t.Fatalf("%+v: status %d", o, w.Code)
			}
		}
	}
	now := time.Now()
	th := newThrottle(Options{Now: func() time.Time { return now }})
	for i := range 3 * throttleSize {
		th.tries[attempt{addr: fmt.Sprint(i)}] = record{1, now}
		if len(th.tries) >= throttleSize {
			th.sweepLocked(now)
		}
	}
	if len(th.tries) > throttleSize {
		t.Errorf("%d attempts are kept", len(th.tries))
	}
}
