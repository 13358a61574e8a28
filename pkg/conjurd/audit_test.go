package conjurd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestAuditTellsWhoDidWhatAndNeverAValue(t *testing.T) {
	var log bytes.Buffer
	s := open(t, Options{Audit: &log})
	loadRoot(t, s, appPolicy)
	const canary = "canary-value"
	for _, q := range []request{
		{method: "POST", path: "/secrets/dev/variable/app/a", as: "host/app/web", body: canary},
		{method: "GET", path: "/secrets/dev/variable/app/a", as: "host/app/web"},
		{method: "GET", path: "/secrets/dev/variable/app/readonly", as: "host/app/web"},
		{method: "GET", path: "/secrets?variable_ids=dev:variable:app/a,dev:variable:app/readonly", as: "host/app/web"},
		{method: "GET", path: "/secrets?variable_ids=dev:variable:app/a", as: "admin"},
		{method: "PUT", path: "/secrets/dev/values", as: "host/app/web", body: `{"secrets":[{"id":"app/a","value":"` + canary + `2"},{"id":"app/readonly","value":"` + canary + `"}]}`},
		{method: "POST", path: "/authn/dev/admin/authenticate", body: canary},
		{method: "GET", path: "/authn/dev/login", header: map[string]string{"Authorization": "Basic YWRtaW46Y2FuYXJ5LXZhbHVl"}},
		{method: "POST", path: "/authn-jwt/nope/dev/authenticate", body: "jwt=" + canary},
		{method: "POST", path: "/policies/dev/policy/root", as: "host/app/web", body: "- !variable x\n"},
	} {
		send(t, s, q)
	}
	key, err := s.APIKey(t.Context(), "admin")
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{canary, key, "Y2FuYXJ5LXZhbHVl"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the audit shows %q", secret)
		}
	}
	seen := map[string]int{}
	for line := range strings.Lines(log.String()) {
		var e struct {
			Time, Operation, Role, ID, Reason string
			Allowed                           bool
			ClientIP                          string `json:"client_ip"`
			RequestID                         string `json:"request_id"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Time == "" || e.RequestID == "" {
			t.Errorf("line %q: %v", line, err)
		}
		seen[fmt.Sprintf("%s %s %s %t", e.Operation, e.Role, e.ID, e.Allowed)]++
	}
	for want, n := range map[string]int{
		"update dev:host:app/web dev:variable:app/a true":         2,
		"update dev:host:app/web dev:variable:app/readonly false": 1,
		"fetch dev:host:app/web dev:variable:app/a true":          2,
		"fetch dev:host:app/web dev:variable:app/readonly false":  2,
		"fetch dev:user:admin dev:variable:app/a true":            1,
		"authenticate dev:user:admin  false":                      1,
		"login dev:user:admin  false":                             1,
		"authenticate-jwt  conjur/authn-jwt/nope false":           1,
		"policy POST dev:host:app/web dev:policy:root false":      0, // invisible: there is nothing to decide
	} {
		if seen[want] != n {
			t.Errorf("%q was noted %d times instead of %d", want, seen[want], n)
		}
	}
}
