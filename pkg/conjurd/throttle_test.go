package conjurd

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const strongPassword = "Correct-Horse-1"

// guess logs in with a password and returns the status and Retry-After.
func guess(t *testing.T, s *Server, login, password string, q request) (int, string) {
	t.Helper()
	q.method, q.path = "GET", "/authn/dev/login"
	if q.header == nil {
		q.header = map[string]string{}
	}
	q.header["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(login+":"+password))
	w := send(t, s, q)
	return w.Code, w.Header().Get("Retry-After")
}

// wrongKey authenticates with a wrong key and returns the status and
// Retry-After. It is counted like a wrong password, and costs less.
func wrongKey(t *testing.T, s *Server, login string, q request) (int, string) {
	t.Helper()
	q.method, q.path, q.body = "POST", "/authn/dev/"+login+"/authenticate", "wrong"
	w := send(t, s, q)
	return w.Code, w.Header().Get("Retry-After")
}

// throttled returns a server with three failures of admin already there, a
// way to move its clock, and admin's API key.
func throttled(t *testing.T) (s *Server, advance func(time.Duration), key string) {
	t.Helper()
	now := time.Now()
	s = open(t, Options{MaxFailedLogins: 3, Now: func() time.Time { return now }})
	loadRoot(t, s, "- !user bob\n")
	key, err := s.APIKey(context.Background(), "admin")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if status, _ := wrongKey(t, s, "admin", request{}); status != http.StatusUnauthorized {
			t.Errorf("failure %d: status %d", i, status)
		}
	}
	return s, func(d time.Duration) { now = now.Add(d) }, key
}

func TestFailedLoginsAreSlowedDown(t *testing.T) {
	s, advance, key := throttled(t)
	w := send(t, s, request{method: "PUT", path: "/authn/dev/password", body: strongPassword, header: map[string]string{
		"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("admin:"+key))}})
	if w.Code != http.StatusNoContent {
		t.Fatalf("setting a password: status %d", w.Code)
	}
	if status, retry := guess(t, s, "admin", strongPassword, request{}); status != http.StatusTooManyRequests || retry != "2" {
		t.Errorf("after three: status %d, Retry-After %q", status, retry)
	}
	if status, _ := wrongKey(t, s, "admin", request{}); status != 429 {
		t.Errorf("authenticating: status %d", status)
	}
	// Others are not held up: not from elsewhere, and not for another login.
	if status, _ := guess(t, s, "admin", strongPassword, request{from: "10.0.0.1"}); status != 200 {
		t.Errorf("from elsewhere: status %d", status)
	}
	if status, _ := wrongKey(t, s, "bob", request{}); status != 401 {
		t.Errorf("another login: status %d", status)
	}
	advance(time.Second)
	if status, _ := guess(t, s, "admin", "wrong", request{}); status != 401 {
		t.Errorf("after the wait: status %d", status)
	}
	if status, retry := guess(t, s, "admin", strongPassword, request{}); status != 429 || retry != "3" {
		t.Errorf("the wait does not double: status %d, Retry-After %q", status, retry)
	}
	advance(2 * time.Second)
	if status, _ := guess(t, s, "admin", strongPassword, request{}); status != 200 {
		t.Errorf("after the second wait: status %d", status)
	}
	for range 3 {
		if status, _ := wrongKey(t, s, "admin", request{}); status != 401 {
			t.Errorf("a success does not forget the failures: status %d", status)
		}
	}
}

// Who guesses from the same address must not lock out the owner of the key,
// and the owner's logins must not give the guesser new tries.
func TestRightKeyIsNeverHeldUp(t *testing.T) {
	s, _, key := throttled(t)
	for range 20 {
		if w := send(t, s, request{method: "POST", path: "/authn/dev/admin/authenticate", body: key}); w.Code != 200 {
			t.Fatalf("authenticating: status %d", w.Code)
		}
		if status, _ := guess(t, s, "admin", key, request{}); status != 200 {
			t.Fatalf("logging in with the key: status %d", status)
		}
		if status, _ := guess(t, s, "admin", "wrong", request{}); status != 429 {
			t.Fatalf("a guess after the owner's login: status %d", status)
		}
	}
}

// Only who is connected counts; a header can say anything.
func TestForwardedForDoesNotEvadeTheThrottle(t *testing.T) {
	s, _, _ := throttled(t)
	for i := range 20 {
		q := request{header: map[string]string{"X-Forwarded-For": fmt.Sprintf("10.0.0.%d", i)}}
		if status, _ := wrongKey(t, s, "admin", q); status != 429 {
			t.Fatalf("guess %d: status %d", i, status)
		}
	}
}

// Guesses that arrive together are counted one by one.
func TestGuessesInParallelAreSlowedDown(t *testing.T) {
	s := open(t, Options{MaxFailedLogins: 1})
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if status, _ := guess(t, s, "admin", "wrong", request{}); status == 401 {
				passed.Add(1)
			}
		})
	}
	wg.Wait()
	if n := passed.Load(); n > int64(cap(s.hashing)) {
		t.Errorf("%d guesses were looked at", n)
	}
}

// TestBoundsOfThrottle: the wait doubles up to a minute, and ten minutes after a failure
// the next one is the first.
func TestBoundsOfThrottle(t *testing.T) {
	now := time.Now()
	th := newThrottle(Options{MaxFailedLogins: 2, Now: func() time.Time { return now }})
	c := &call{r: &http.Request{RemoteAddr: "127.0.0.1:1"}}
	for i, seconds := range []time.Duration{0, 0, 1, 2, 4, 8, 16, 32, 60, 60} {
		if wait := th.wait(c, "x"); wait != seconds*time.Second {
			t.Errorf("after %d failures: %v", i, wait)
		}
		th.recordAttempt(c, "x", false)
	}
	failed := now
	for _, after := range []time.Duration{time.Minute - 1, time.Minute} {
		now = failed.Add(after)
		if wait := th.wait(c, "x"); wait != time.Minute-after {
			t.Errorf("%v after a failure: wait %v", after, wait)
		}
	}
	for _, old := range []bool{false, true} {
		if now = failed.Add(10 * time.Minute); old {
			now = failed.Add(10*time.Minute + 1)
		}
		th.recordAttempt(c, "x", false)
		if wait := th.wait(c, "x"); (wait == 0) != old {
			t.Errorf("%v after a failure, the next one: wait %v", now.Sub(failed), wait)
		}
		failed = now
	}
}

// TestBoundsOfSweep: old attempts go at most once a minute.
func TestBoundsOfSweep(t *testing.T) {
	begin := time.Now()
	for less := time.Duration(-1); less <= 1; less++ {
		th := newThrottle(Options{Now: time.Now})
		th.tries = map[attempt]record{{1}: {1, begin.Add(less)}, {2}: {1, begin.Add(time.Hour)}}
		th.sweepLocked(begin.Add(10 * time.Minute))
		if (len(th.tries) == 2) != (less >= 0) {
			t.Errorf("a failure of ten minutes%+d ago: %d are kept", -less, len(th.tries))
		}
		th.tries[attempt{1}] = record{1, begin}
		th.sweepLocked(begin.Add(11*time.Minute + less))
		if (len(th.tries) == 2) != (less < 0) {
			t.Errorf("a sweep after a minute%+d: %d are kept", less, len(th.tries))
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
		th.tries[sha256.Sum256([]byte(fmt.Sprint(i)))] = record{1, now}
		if len(th.tries) >= throttleSize {
			th.sweepLocked(now)
		}
	}
	if len(th.tries) != throttleSize-1 {
		t.Errorf("%d attempts are kept", len(th.tries))
	}
}
