package conformance

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// TestARunMayTakeLongerThanATokenLives: a run against a slow server asks for new
// tokens.
func TestARunMayTakeLongerThanATokenLives(t *testing.T) {
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	server := conjurdtest.Start(t, conjurdtest.Strict(), conjurdtest.Clock(now))
	s := newSuite(Target{URL: server.URL, CA: server.CA, Account: server.Account, Login: "admin", APIKey: server.AdminKey, Ours: true}, now)
	t.Cleanup(s.client.CloseIdleConnections)
	for range 4 {
		if res, body := s.do(t, exchange{as: s.admin(), req: "GET /whoami"}); res.StatusCode != http.StatusOK {
			t.Fatalf("status %d, body %q", res.StatusCode, body)
		}
		ahead.Add(int64(tokenAge))
	}
}

// TestTheTextOfAServerWithAnAccount is right as well: with CONJUR_ACCOUNT in its
// environment the genuine server has more to say of some errors.
func TestTheTextOfAServerWithAnAccount(t *testing.T) {
	s := newSuite(Target{Account: "dev"}, time.Now)
	want := (&yardRun{suite: s, id: "y"}).answer(policyLoad{Error: "Missing required option account", Or: "variable '{y}/d' is declared more than once"})
	for _, message := range []string{"Missing required option account", "variable 'y/d' is declared more than once", "variable 'y/d' is declared more than once in account 'dev'"} {
		if body := `{"error":{"code":"policy_invalid","message":"` + message + `"}}`; !want.match(body) {
			t.Errorf("not right: %s", body)
		}
	}
	if body := `{"error":{"code":"policy_invalid","message":"variable 'y/e' is declared more than once"}}`; want.match(body) {
		t.Errorf("right: %s", body)
	}
}
