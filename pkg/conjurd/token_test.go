package conjurd

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"
	"time"

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
	token, err := slosilo.Parse(encoded)
	if !ok || err != nil {
		t.Fatal(err)
	}
	_, claims, err := s.verify(token)
	if err != nil {
		t.Fatal(err)
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

func TestTokenOfAnotherServer(t *testing.T) {
	auth := map[string]string{"Authorization": tokenFor(t, open(t, Options{TokenKey: newTokenKey()}), "admin")}
	if w := send(t, open(t, Options{}), request{method: "GET", path: "/whoami", header: auth}); w.Code != 401 {
		t.Errorf("status %d", w.Code)
	}
}
