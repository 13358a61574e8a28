package conjurd

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"k8s.io/utils/lru"

	"github.com/secretsync/syncer/pkg/conjurd/internal/slosilo"
)

// mint signs any claims with the server's own key.
func mint(t *testing.T, s *Server, c slosilo.Claims) map[string]string {
	t.Helper()
	for _, k := range s.keys {
		token, err := k.key.Sign(c)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(token)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"Authorization": `Token token="` + base64.StdEncoding.EncodeToString(text) + `"`}
	}
	return nil
}

func TestMintedTokens(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, appPolicy)
	set(t, s, "app/a", "one")
	now := time.Now().Unix()
	for _, c := range []struct {
		name   string
		claims slosilo.Claims
		status int
		body   string
	}{
		{"fresh without an expiry", slosilo.Claims{IssuedAt: now, Subject: "admin"}, 200, "one"},
		{"old without an expiry", slosilo.Claims{IssuedAt: now - 500, Subject: "admin"}, 401, "Unauthorized: Invalid token"},
		{"expired", slosilo.Claims{IssuedAt: now - 500, Subject: "admin", ExpiresAt: now - 20}, 401, "Unauthorized: Invalid token"},
		{"long", slosilo.Claims{IssuedAt: now, Subject: "admin", ExpiresAt: now + 99999}, 200, "one"},
		{"from the future", slosilo.Claims{IssuedAt: now + 100, Subject: "admin", ExpiresAt: now + 200}, 200, "one"},
		{"from another network", slosilo.Claims{IssuedAt: now, Subject: "admin", CIDR: []string{"10.0.0.0/8"}}, 403, "IP address rejected"},
		{"from its network", slosilo.Claims{IssuedAt: now, Subject: "admin", CIDR: []string{"127.0.0.0/8"}}, 200, "one"},
		{"of nobody", slosilo.Claims{IssuedAt: now, Subject: "ghost"}, 403, ""},
	} {
		w := send(t, s, request{method: "GET", path: "/secrets/dev/variable/app/a", header: mint(t, s, c.claims)})
		if w.Code != c.status || w.Body.String() != c.body {
			t.Errorf("%s: status %d, body %q", c.name, w.Code, w.Body)
		}
	}
}

func TestTokenTTL(t *testing.T) {
	for _, c := range []struct {
		o          Options
		user, host int64
	}{
		{Options{}, 480, 480},
		{Options{UserTokenTTL: 2 * time.Second, HostTokenTTL: 99999 * time.Second}, 2, 18000},
	} {
		s := open(t, c.o)
		loadRoot(t, s, appPolicy)
		for login, want := range map[string]int64{"admin": c.user, "host/app/web": c.host} {
			if got := life(t, s, login); got != want {
				t.Errorf("a token of %s lives %d s instead of %d", login, got, want)
			}
		}
	}
}

// life returns how long a new token is good for, in seconds.
func life(t *testing.T, s *Server, login string) int64 {
	t.Helper()
	r := &http.Request{Header: http.Header{"Authorization": {tokenFor(t, s, login)}}}
	encoded, ok := tokenOf(r)
	_, claims, err := s.verify(encoded)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	return claims.ExpiresAt - claims.IssuedAt
}

func TestTokenExpiresByTheServersClock(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	s := open(t, Options{UserTokenTTL: 3 * time.Second, Now: func() time.Time { return now }})
	auth := map[string]string{"Authorization": tokenFor(t, s, "admin")}
	who := request{method: "GET", path: "/whoami", header: auth}
	now = now.Add(3*time.Second - 1)
	if w := send(t, s, who); w.Code != 200 {
		t.Errorf("before its end: status %d", w.Code)
	}
	now = now.Add(1)
	if w := send(t, s, who); w.Code != 401 || w.Body.String() != "Unauthorized: Invalid token" {
		t.Errorf("after its end: status %d", w.Code)
	}
}

func TestVerifiedTokensAreRememberedUpToABound(t *testing.T) {
	s := open(t, Options{})
	s.verified = lru.New(2)
	encoded := func() string {
		encoded, _ := tokenOf(&http.Request{Header: http.Header{"Authorization": {tokenFor(t, s, "admin")}}})
		return encoded
	}
	token := encoded()
	for range 3 {
		for _, good := range []string{token, encoded()} {
			if account, claims, err := s.verify(good); account != "dev" || claims.Subject != "admin" || err != nil {
				t.Fatal(account, claims, err)
			}
		}
		if _, ok := s.verified.Get(token); !ok {
			t.Fatal("the token that was used last but one is not remembered")
		}
	}
	if n := s.verified.Len(); n != 2 {
		t.Errorf("%d tokens are remembered", n)
	}
	forged := encoded()
	raw, err := base64.StdEncoding.DecodeString(forged)
	if err != nil {
		t.Fatal(err)
	}
	raw[bytes.Index(raw, []byte(`"signature":"`))+len(`"signature":"`)] ^= 1
	forged = base64.StdEncoding.EncodeToString(raw)
	if _, _, err := s.verify(forged); !errors.Is(err, slosilo.ErrInvalid) {
		t.Errorf("a forged token: %v", err)
	}
	if _, ok := s.verified.Get(forged); ok {
		t.Error("a forged token is remembered")
	}
}

func TestLongTokensAreNotRemembered(t *testing.T) {
	s := open(t, Options{})
	encoded, _ := tokenOf(&http.Request{Header: http.Header{"Authorization": {tokenFor(t, s, "admin")}}})
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	bound := base64.StdEncoding.DecodedLen(longestVerified) / 3 * 3
	for _, c := range []struct {
		length     int // in base64
		remembered bool
	}{
		{longestVerified - 4, true}, {longestVerified, true}, {longestVerified + 4, false},
	} {
		spaces := bytes.Repeat([]byte(" "), bound+(c.length-longestVerified)/4*3-len(raw))
		long := base64.StdEncoding.EncodeToString(append(bytes.Clone(raw), spaces...))
		if len(long) != c.length {
			t.Fatalf("%d characters instead of %d", len(long), c.length)
		}
		if _, _, err := s.verify(long); err != nil {
			t.Errorf("with %d characters: %v", c.length, err)
		}
		if _, ok := s.verified.Get(long); ok != c.remembered {
			t.Errorf("with %d characters, remembered: %t", c.length, ok)
		}
	}
}

func TestTokenOfAnotherServer(t *testing.T) {
	auth := map[string]string{"Authorization": tokenFor(t, open(t, Options{TokenKey: newTokenKey()}), "admin")}
	if w := send(t, open(t, Options{}), request{method: "GET", path: "/whoami", header: auth}); w.Code != 401 {
		t.Errorf("status %d", w.Code)
	}
}
