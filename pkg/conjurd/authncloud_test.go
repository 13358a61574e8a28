package conjurd

import (
	"maps"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/cloudtest"
)

// jwtForm is the body that carries a token.
func jwtForm(token string) string { return "jwt=" + token }

func with(base map[string]any, pairs ...any) map[string]any {
	claims := maps.Clone(base)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == nil {
			delete(claims, pairs[i].(string))
			continue
		}
		claims[pairs[i].(string)] = pairs[i+1]
	}
	return claims
}

const azurePolicy = `
- !policy
  id: conjur/authn-azure/prod
  body:
  - !webservice
  - !variable provider-uri
  - !group apps
  - !permit { role: !group apps, privileges: [read, authenticate], resource: !webservice }
- !host { id: vm, annotations: { authn-azure/subscription-id: sub, authn-azure/resource-group: wrong, authn-azure/prod/resource-group: rg, authn-azure/other/resource-group: no } }
- !host { id: user, annotations: { authn-azure/subscription-id: sub, authn-azure/resource-group: rg, authn-azure/user-assigned-identity: mine } }
- !host { id: system, annotations: { authn-azure/subscription-id: sub, authn-azure/resource-group: rg, authn-azure/system-assigned-identity: oid-1 } }
- !host { id: both, annotations: { authn-azure/subscription-id: sub, authn-azure/resource-group: rg, authn-azure/user-assigned-identity: mine, authn-azure/system-assigned-identity: oid-1 } }
- !host { id: half, annotations: { authn-azure/subscription-id: sub } }
- !host { id: misspelt, annotations: { authn-azure/subscription-id: sub, authn-azure/resource-group: rg, authn-azure/resource-groups: rg } }
- !host { id: outside, annotations: { authn-azure/subscription-id: sub, authn-azure/resource-group: rg } }
- !host { id: far, restricted_to: [ 10.1.1.1 ], annotations: { authn-azure/subscription-id: sub, authn-azure/resource-group: rg } }
- !grant { role: !group conjur/authn-azure/prod/apps, members: [ !host vm, !host user, !host system, !host both, !host half, !host misspelt, !host far ] }
`

func TestAzure(t *testing.T) {
	issuer := cloudtest.NewIssuer(t, time.Now)
	s := open(t, Options{})
	loadRoot(t, s, azurePolicy)
	set(t, s, "conjur/authn-azure/prod/provider-uri", issuer.URL)
	machine := map[string]any{
		"iss": issuer.URL + "/", "aud": "anything", "oid": "oid-1",
		"xms_mirid": "/subscriptions/sub/resourcegroups/rg/providers/Microsoft.Compute/virtualMachines/vm",
	}
	assigned := with(machine, "xms_mirid", "/subscriptions/sub/resourcegroups/rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/mine")
	for name, c := range map[string]struct {
		host   string
		claims map[string]any
		status int
	}{
		"a machine":                       {"vm", machine, 200},
		"an identity of a machine":        {"system", machine, 200},
		"an identity of a user":           {"user", assigned, 200},
		"the other kind of identity":      {"user", machine, 401},
		"the other kind, too":             {"system", assigned, 401},
		"another machine's object":        {"system", with(machine, "oid", "oid-2"), 401},
		"another subscription":            {"vm", with(machine, "xms_mirid", "/subscriptions/x/resourcegroups/rg/providers/A/B/C"), 401},
		"another group":                   {"vm", with(machine, "xms_mirid", "/subscriptions/sub/resourcegroups/x/providers/A/B/C"), 401},
		"a path of another form":          {"vm", with(machine, "xms_mirid", "/subscriptions/sub"), 401},
		"no path":                         {"vm", with(machine, "xms_mirid", nil), 401},
		"no object":                       {"vm", with(machine, "oid", nil), 401},
		"another issuer":                  {"vm", with(machine, "iss", "https://other/"), 401},
		"expired":                         {"vm", with(machine, "exp", time.Now().Unix()-1), 401},
		"annotations for both identities": {"both", machine, 401},
		"too few annotations":             {"half", machine, 401},
		"an unknown annotation":           {"misspelt", machine, 401},
		"no right":                        {"outside", machine, 403},
		"no such host":                    {"nobody", machine, 401},
		"another address":                 {"far", machine, 401},
	} {
		w := send(t, s, request{method: "POST", path: "/authn-azure/prod/dev/host%2F" + c.host + "/authenticate", body: jwtForm(issuer.Token(c.claims))})
		if w.Code != c.status {
			t.Errorf("%s: status %d, want %d", name, w.Code, c.status)
		}
	}
	for body, status := range map[string]int{"": 400, "jwt=": 400, "jwt=x": 401, jwtForm(cloudtest.NewIssuer(t, time.Now).Token(machine)): 401} {
		if w := send(t, s, request{method: "POST", path: "/authn-azure/prod/dev/host%2Fvm/authenticate", body: body}); w.Code != status {
			t.Errorf("the body %q: status %d, want %d", body, w.Code, status)
		}
	}
	send(t, s, request{method: "PATCH", path: "/authn-azure/prod/dev", as: "admin", body: "enabled=false"})
	if w := send(t, s, request{method: "POST", path: "/authn-azure/prod/dev/host%2Fvm/authenticate", body: jwtForm(issuer.Token(machine))}); w.Code != 401 {
		t.Errorf("switched off: status %d", w.Code)
	}
}

const gcpPolicy = `
- !policy
  id: conjur/authn-gcp
  body:
  - !webservice
  - !group apps
  - !permit { role: !group apps, privileges: [read, authenticate], resource: !webservice }
- !host { id: app/vm, annotations: { authn-gcp/project-id: p1, authn-gcp/instance-name: i1 } }
- !host { id: sa, annotations: { authn-gcp/service-account-id: "42", authn-gcp/service-account-email: a@b } }
- !host { id: instance, annotations: { authn-gcp/instance-name: i1 } }
- !host { id: none }
- !host { id: misspelt, annotations: { authn-gcp/project-id: p1, authn-gcp/project: p1 } }
- !host { id: outside, annotations: { authn-gcp/project-id: p1 } }
- !grant { role: !group conjur/authn-gcp/apps, members: [ !host app/vm, !host sa, !host instance, !host none, !host misspelt ] }
`

func TestGCP(t *testing.T) {
	issuer := cloudtest.NewIssuer(t, time.Now)
	s := open(t, Options{GoogleIssuer: issuer.URL})
	loadRoot(t, s, gcpPolicy)
	machine := map[string]any{
		"iss": issuer.URL, "aud": "conjur/dev/host/app/vm", "sub": "42", "email": "a@b",
		"google": map[string]any{"compute_engine": map[string]any{"project_id": "p1", "instance_name": "i1"}},
	}
	for name, c := range map[string]struct {
		claims map[string]any
		status int
	}{
		"a machine":             {machine, 200},
		"a service account":     {with(machine, "aud", "conjur/dev/host/sa"), 200},
		"its email differs":     {with(machine, "aud", "conjur/dev/host/sa", "email", "x@b"), 401},
		"another project":       {with(machine, "google", map[string]any{"compute_engine": map[string]any{"project_id": "p2", "instance_name": "i1"}}), 401},
		"no claims of machines": {with(machine, "google", nil), 401},
		"an instance alone":     {with(machine, "aud", "conjur/dev/host/instance"), 401},
		"no annotations":        {with(machine, "aud", "conjur/dev/host/none"), 401},
		"an unknown annotation": {with(machine, "aud", "conjur/dev/host/misspelt"), 401},
		"no right":              {with(machine, "aud", "conjur/dev/host/outside"), 403},
		"no such host":          {with(machine, "aud", "conjur/dev/host/nobody"), 401},
		"a user":                {with(machine, "aud", "conjur/dev/admin"), 401},
		"another account":       {with(machine, "aud", "conjur/other/host/app/vm"), 401},
		"another audience":      {with(machine, "aud", "app/vm"), 401},
		"another issuer":        {with(machine, "iss", googleIssuer), 401},
		"expired":               {with(machine, "exp", time.Now().Unix()-1), 401},
	} {
		w := send(t, s, request{method: "POST", path: "/authn-gcp/dev/authenticate", body: jwtForm(issuer.Token(c.claims))})
		if w.Code != c.status {
			t.Errorf("%s: status %d, want %d", name, w.Code, c.status)
		}
	}
	if w := send(t, s, request{method: "POST", path: "/authn-gcp/dev/authenticate"}); w.Code != 400 {
		t.Errorf("without a token: status %d", w.Code)
	}
}
