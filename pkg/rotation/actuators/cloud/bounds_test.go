package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
)

// answers is a service that gives one answer.
type answers http.Response

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) { return (*http.Response)(a), nil }

// ask sends a request to a service that gives this answer.
func ask(t *testing.T, status int, body, retryAfter string) (*caller, error) {
	a := &answers{StatusCode: status, Header: http.Header{"Retry-After": {retryAfter}}, Body: io.NopCloser(strings.NewReader(body))}
	c := newCaller("a cloud", &http.Client{Transport: a}, func([]byte) string { return "" })
	req, err := http.NewRequest(http.MethodGet, "https://cloud/", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.do(t.Context(), "call", req)
	return c, err
}

// TestBoundsOfAnswers: their size and status, the time that they ask to wait, and the
// characters of a code.
func TestBoundsOfAnswers(t *testing.T) {
	for less := -1; less <= 1; less++ {
		if _, err := ask(t, 200, strings.Repeat("x", 1<<20+less), ""); (err == nil) != (less <= 0) {
			t.Errorf("an answer of the bound%+d: %v", less, err)
		}
		if code := plain(strings.Repeat("x", 80+less)); len(code) != 80+min(less, 0) {
			t.Errorf("a code of the bound%+d has %d characters", less, len(code))
		}
	}
	for status, good := range map[int]bool{199: false, 200: true, 201: true, 298: true, 299: true, 300: false} {
		if _, err := ask(t, status, "", ""); (err == nil) != good {
			t.Errorf("the status %d: %v", status, err)
		}
	}
	for retryAfter, want := range map[string]time.Duration{
		"": 2 * time.Second, "soon": 2 * time.Second, "-1": 2 * time.Second, "0": 0, "1": time.Second,
		"899": 899 * time.Second, "900": 900 * time.Second, "901": 900 * time.Second, "9000000000": 900 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := ask(t, http.StatusTooManyRequests, "", retryAfter)
			if got := time.Until(c.quiet); got != want {
				t.Errorf("Retry-After %q: wait %v, want %v", retryAfter, got, want)
			}
		})
	}
	const good = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
	for c := range rune(0x80) {
		if kept := plain(string(c)) != ""; kept != strings.ContainsRune(good, c) {
			t.Errorf("%q is kept: %t", c, kept)
		}
	}
}

// few is a cloud with room for three keys.
type few struct {
	keys []key
	used time.Time
	left map[string]bool // key → it was only disabled
}

func (*few) holder() string { return "the user" }
func (*few) limit() int     { return 3 }
func (*few) marks() bool    { return false }
func (f *few) listKeys(context.Context) ([]key, time.Time, error) {
	return append([]key{}, f.keys...), time.Now(), nil
}
func (*few) create(context.Context, versions.Version) (string, map[string]secret.Value, error) {
	return "", nil, nil
}
func (f *few) disable(_ context.Context, id string) (bool, error) {
	f.left[id] = true
	return true, nil
}
func (f *few) remove(_ context.Context, id string) error       { delete(f.left, id); return nil }
func (*few) complete(versions.Version) map[string]secret.Value { return nil }
func (*few) keyOf(v versions.Version) string                   { return v.ID }
func (*few) verify(context.Context, versions.Version) error    { return nil }
func (f *few) lastUsed(context.Context, string) (time.Time, string, error) {
	return f.used, "", nil
}

// TestBoundsOfRoom: a rotation needs room for two keys, and a new key for one.
func TestBoundsOfRoom(t *testing.T) {
	for n := range 5 {
		cloud := &few{}
		for i := range n {
			cloud.keys = append(cloud.keys, key{id: fmt.Sprint("k", i)})
		}
		empty, begun := versions.New("us"), versions.New("us").Make("r1", nil, false, versions.Entry{})
		own, adopts := newKeys(Config{}, time.Minute, cloud), newKeys(Config{Adopts: true}, time.Minute, cloud)
		for name, c := range map[string]struct {
			keys *Keys
			doc  *versions.Document
			room int // for this many other keys
		}{"a set": {own, empty, 1}, "one that adopts a key": {adopts, empty, 2}, "one that has adopted it": {adopts, begun, 1}} {
			if barred := c.keys.Barred(t.Context(), c.doc); (barred == nil) != (n <= c.room) {
				t.Errorf("%s among %d keys: %v", name, n, barred)
			}
		}
		for name, c := range map[string]struct {
			keys *Keys
			doc  *versions.Document
			good bool
		}{"a set": {own, empty, n < 3}, "one that adopts a key": {adopts, empty, true}, "one that has adopted it": {adopts, begun, n < 3}} {
			if _, err := c.keys.Prepare(t.Context(), c.doc); (err == nil) != c.good {
				t.Errorf("%s prepares a key beside %d: %v", name, n, err)
			}
		}
		f := &fault{code: "LimitExceeded", status: http.StatusConflict}
		if text := own.explained(f, empty, cloud.keys).Error(); strings.Contains(text, "has room for a key") != (n < 3) {
			t.Errorf("a refusal with %d keys: %s", n, text)
		}
	}
}

// TestBoundsOfTimes: how long a key counts as used, is inactive, and may be invisible.
func TestBoundsOfTimes(t *testing.T) {
	for less := time.Duration(-1); less <= 1; less++ {
		later := func(err error) bool { return errors.As(err, new(*actuators.LaterError)) }
		bubble := func(test func(t *testing.T, k *Keys, cloud *few)) {
			synctest.Test(t, func(t *testing.T) {
				cloud := &few{left: map[string]bool{}}
				test(t, newKeys(Config{Unused: time.Hour, DeleteAfter: 30 * time.Minute}, time.Minute, cloud), cloud)
			})
		}
		bubble(func(t *testing.T, k *Keys, cloud *few) {
			cloud.used = time.Now().Add(-time.Hour - less)
			if who, err := k.InUse(t.Context(), versions.Version{ID: "k1"}); err != nil || (len(who) == 1) != (less <= 0) {
				t.Errorf("used an hour%+d ago: %q, %v", less, who, err)
			}
		})
		bubble(func(t *testing.T, k *Keys, _ *few) {
			if err := k.invisible("k1", 10*time.Minute+less); later(err) != (less < 0) {
				t.Errorf("decided ten times as long ago%+d: %v", less, err)
			}
			if !later(k.invisible("k2", 0)) {
				t.Error("a request that was just sent is visible")
			}
			time.Sleep(time.Minute + less)
			if err := k.invisible("k2", 0); later(err) != (less < 0) {
				t.Errorf("after the bound%+d: %v", less, err)
			}
		})
		bubble(func(t *testing.T, k *Keys, cloud *few) {
			end := func(active bool) error {
				return k.end(t.Context(), key{id: "k1", active: active}, "", time.Now(), time.Now())
			}
			if err := end(true); !later(err) || !cloud.left["k1"] {
				t.Errorf("an active key: %v", err)
			}
			time.Sleep(time.Minute + less)
			if err := end(true); strings.Contains(err.Error(), "activated the key k1 again") != (less > 0) {
				t.Errorf("a key that is active after the bound%+d: %v", less, err)
			}
			time.Sleep(29 * time.Minute)
			if err := end(false); later(err) != (less < 0) || cloud.left["k1"] != (less < 0) {
				t.Errorf("an inactive key after the bound%+d: %v", less, err)
			}
		})
	}
}
