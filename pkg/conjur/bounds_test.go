package conjur

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestBoundsOfBodies(t *testing.T) {
	for kind, want := range map[Kind]int64{
		KindAuthenticate: 1 << 20, KindLogin: 1 << 20, KindWhoami: 1 << 20, KindCheck: 1 << 20, KindResource: 1 << 20,
		KindList: 8 << 20, KindBatch: 24 << 20, KindVariable: 24 << 20,
	} {
		for status, want := range map[int]int64{200: want, 201: want, 199: 64 << 10, 202: 64 << 10, 404: 64 << 10} {
			if got := kind.longest(status); got != want {
				t.Errorf("%s, status %d: %d bytes, want %d", kind, status, got, want)
			}
		}
	}
}

// TestAnAddressThatIsNone is an error.
func TestAnAddressThatIsNone(t *testing.T) {
	if _, err := new(Client).authenticateRequest(Credential{URL: "https://conjur\n"}, nil); err == nil || strings.Contains(err.Error(), "conjur\n") {
		t.Errorf("the error is %v", err)
	}
}

// TestBoundsOfPauses: a server is heard for five minutes, and each client adds up to half of
// that.
func TestBoundsOfPauses(t *testing.T) {
	for after, want := range map[string]time.Duration{
		"": 0, "0": 0, "-1": 0, "x": 0, "1": time.Second, "299": 299 * time.Second, "300": 300 * time.Second, "301": 300 * time.Second, "2147483647": 300 * time.Second,
		"Sat, 01 Jan 2000 00:00:00 GMT": 0, "Sat, 01 Jan 2000 00:00:01 GMT": time.Second, "Fri, 31 Dec 1999 23:59:59 GMT": 0, "Sat, 01 Jan 2000 01:00:00 GMT": 300 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) { // which begins in 2000
			now, least, most := time.Now(), time.Duration(1<<62), time.Duration(0)
			for range 2000 {
				var g pauser
				g.pause(429, after)
				d := max(g.until.Sub(now), 0)
				least, most = min(least, d), max(most, d)
			}
			if least < want || least > want+want/50 || most > want*3/2 || most < want*3/2-want/50 {
				t.Errorf("%q: pauses of %v to %v, want %v to %v", after, least, most, want, want*3/2)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // a shorter pause ends none that is longer
		var g pauser
		g.pause(503, "200")
		longer := g.until
		if g.pause(429, "1"); g.status != 503 || g.until != longer {
			t.Errorf("a pause of status %d ends after %v", g.status, time.Until(g.until))
		}
	})
	for less := time.Duration(-1); less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			g := pauser{status: 429, until: time.Now().Add(time.Minute)}
			time.Sleep(time.Minute + less)
			if err := g.checkPause(); (err == nil) != (less >= 0) {
				t.Errorf("at the end%+d of a pause: %v", less, err)
			}
		})
	}
}

func TestBoundsOfReplays(t *testing.T) {
	for less := -1; less <= 1; less++ {
		s := newReplays()
		s.knows("first")
		for i := range 2*mostRequestIDs - 1 + less {
			if s.knows(fmt.Sprint(i)) {
				t.Fatalf("answer %d is known", i)
			}
		}
		if known := s.knows("first"); known != (less <= 0) {
			t.Errorf("after the bound%+d of others, the first is known: %t", less, known)
		}
	}
	issued := time.Date(2000, 1, 1, 0, 0, 10, 0, time.UTC)
	for second, want := range map[int]bool{4: true, 5: false, 6: false} {
		header := http.Header{"Date": {issued.Truncate(time.Minute).Add(time.Duration(second) * time.Second).Format(http.TimeFormat)}}
		if isBefore(header, issued) != want || isBefore(header, time.Time{}) || isBefore(http.Header{}, issued) {
			t.Errorf("an answer of second %d: want %t", second, want)
		}
	}
}

func TestBoundsOfTokens(t *testing.T) {
	const day = 24 * 60 * 60
	for times, want := range map[string]struct {
		life time.Duration
		said bool
	}{
		`"iat":100,"exp":99`: {0, true}, `"iat":100,"exp":100`: {0, true}, `"iat":100,"exp":101`: {time.Second, true},
		fmt.Sprintf(`"iat":100,"exp":%d`, 100+day-1): {(day - 1) * time.Second, true}, fmt.Sprintf(`"iat":100,"exp":%d`, 100+day): {day * time.Second, true},
		fmt.Sprintf(`"iat":100,"exp":%d`, 100+day+1): {day * time.Second, true}, `"iat":100`: {8 * time.Minute, false}, `"exp":100`: {8 * time.Minute, false},
		`"iat":-1,"exp":9`: {10 * time.Second, false}, `"iat":0,"exp":10`: {10 * time.Second, false}, `"iat":1,"exp":11`: {10 * time.Second, true},
		fmt.Sprintf(`"iat":%d,"exp":%d`, 1<<37-1, 1<<37+9): {10 * time.Second, true}, fmt.Sprintf(`"iat":%d,"exp":%d`, 1<<37, 1<<37+10): {10 * time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			payload := base64.StdEncoding.EncodeToString([]byte(`{"sub":"host/a",` + times + `}`))
			token, err := parseToken([]byte(`{"protected":"x","payload":"` + payload + `","signature":"x"}`))
			if err != nil {
				t.Fatal(err)
			}
			if token.said.IsZero() == want.said || time.Until(token.expire) != want.life || time.Until(token.renew) != want.life/4*3 {
				t.Errorf("%s: renewed after %v, expires after %v, said %v; want a life of %v", times, time.Until(token.renew), time.Until(token.expire), token.said, want.life)
			}
		})
	}
	for less := time.Duration(-1); less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			at := time.Now().Add(time.Minute)
			new := func() *tokens {
				return &tokens{current: &Token{renew: at, expire: at.Add(time.Minute)}, cause: errors.New("cause")}
			}
			busy, resting, calm := new(), new(), new()
			busy.renewal = &renewal{}
			resting.rest.Begin(time.Hour)
			time.Sleep(time.Minute + less)
			if token, _, lead, _ := calm.tokenOrRenewal(nil); (token != nil) != (less < 0) || lead != (less >= 0) {
				t.Errorf("at the time to renew%+d: lead %t", less, lead)
			}
			time.Sleep(time.Minute)
			if token, r, _, _ := busy.tokenOrRenewal(nil); (token != nil) != (less < 0) || (r != nil) != (less >= 0) {
				t.Errorf("at the expiry%+d, during a renewal: %v", less, token)
			}
			if token, _, _, err := resting.tokenOrRenewal(nil); (token != nil) != (less < 0) || (err != nil) != (less >= 0) {
				t.Errorf("at the expiry%+d, during a rest: %v, %v", less, token, err)
			}
			calm.renewal = nil
			if token, err := calm.ended(&renewal{done: make(chan struct{}), err: errors.New("no")}); (token != nil) != (less < 0) || (err != nil) != (less >= 0) {
				t.Errorf("at the expiry%+d, after a renewal that failed: %v, %v", less, token, err)
			}
		})
	}
}

func TestBoundsOfSlowLogins(t *testing.T) {
	for less := time.Duration(-1); less <= 1; less++ {
		synctest.Test(t, func(t *testing.T) {
			c := &Client{config: Config{HTTPTimeout: time.Minute}, tokens: &tokens{}}
			began := time.Now()
			if c.spread(t.Context(), slowLogin+less); time.Since(began) > 0 {
				t.Error("the first login waits")
			}
			c.tokens.name = "host/a"
			c.spread(t.Context(), slowLogin+less)
			if waited := time.Since(began); (waited > 0) != (less >= 0) || waited >= time.Minute {
				t.Errorf("a login of the bound%+d waits %v", less, waited)
			}
		})
	}
}

func TestBoundsOfStatuses(t *testing.T) {
	for status, want := range map[int]string{
		299: "", 300: "set the address", 399: "set the address", 400: "", 500: "see Conjur's log", 501: "is down", 505: "speak HTTP/1.1", 599: "is down", 600: "",
	} {
		if got := (&StatusError{Kind: KindList, Status: status}).advice(); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("status %d: %q, want %q", status, got, want)
		}
	}
}

func TestBoundsOfCodes(t *testing.T) {
	for n, whole := range map[int]bool{0: false, 1: true, 39: true, 40: true, 41: false} {
		code := strings.Repeat("c", n)
		got := decodeRefusals([]byte(`{"error":{"details":{"variables":[{"id":"a","code":"` + code + `"}]}}}`))
		if want := map[bool]string{true: code, false: "refused"}[whole]; len(got) != 1 || got["a"] != want {
			t.Errorf("a code of %d letters: %q", n, got)
		}
	}
}

// TestBoundsOfAccounts and of settings.
func TestBoundsOfAccounts(t *testing.T) {
	for r, bad := range map[rune]bool{0: true, '\x1f': true, ' ': true, '!': false, '~': false, 0x7f: true, 0x80: false, ':': true} {
		if notInAccount(r) != bad {
			t.Errorf("%q cannot be in an account: %t", r, !bad)
		}
	}
	for id, ok := range map[string]bool{"": false, ".": false, "..": false, "...": true, "a\x1fb": false, "a b": true, "a\x7fb": false, "a~b": true, "\xff": false} {
		if err := CheckID(id); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestBoundsOfJSON(t *testing.T) {
	for text, want := range map[string]string{`"`: "error", `""`: "", `"a"`: "a", `x`: "error", ``: "error"} {
		got, err := decodeValue([]byte(text), false)
		if (err != nil) != (want == "error") || err == nil && !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

func TestBoundsOfHints(t *testing.T) {
	req, err := http.NewRequest(http.MethodGet, "https://conjur.test/secrets", nil)
	if err != nil {
		t.Fatal(err)
	}
	for status, moved := range map[int]bool{299: false, 300: true, 302: true, 399: true, 400: false} {
		r := &reply{status: status, header: http.Header{"Location": {"https://other.test/api/secrets"}}}
		if got := hint(req, "https://conjur.test", r); (got == "set the address https://other.test/api") != moved || (got == "") == moved {
			t.Errorf("status %d: %q", status, got)
		}
	}
	for body, want := range map[string]bool{"": false, "<": true} {
		r := &reply{status: 200, body: []byte(body), header: http.Header{"Content-Type": {"text/html"}}}
		if got := hint(req, "https://conjur.test", r); strings.Contains(got, "/api if this is Conjur Enterprise") != want {
			t.Errorf("a page of %d bytes: %q", len(body), got)
		}
	}
}

// TestTheNewestOfVersions decides whether the value expires.
func TestTheNewestOfVersions(t *testing.T) {
	for versions, want := range map[string]Resource{
		`[]`: {}, `[{"version":0,"expires_at":"x"}]`: {Expires: true}, `[{"version":1}]`: {Newest: 1},
		`[{"version":2,"expires_at":"x"},{"version":1}]`: {Newest: 2, Expires: true}, `[{"version":1,"expires_at":"x"},{"version":2}]`: {Newest: 2},
	} {
		r := &reply{status: 200, header: jsonHeader(""), body: []byte(`{"id":"dev:variable:a","secrets":` + versions + `}`)}
		got, ok := decodeResource(r, "dev:variable:a")
		if !ok || got.Newest != want.Newest || got.Expires != want.Expires {
			t.Errorf("%s: %+v, %t", versions, got, ok)
		}
	}
}
