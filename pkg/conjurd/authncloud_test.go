package conjurd

import (
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/cloudtest"
)

// The package conformance logs in on all clouds, and is refused. Here is what it
// leaves out.

const cloudPolicy = `
- !policy
  id: conjur/authn-azure/prod
  body:
  - !webservice
  - !variable provider-uri
  - !group apps
  - !permit { role: !group apps, privileges: [read, authenticate], resource: !webservice }
- !policy
  id: conjur/authn-gcp
  body:
  - !webservice
  - !group apps
  - !permit { role: !group apps, privileges: [read, authenticate], resource: !webservice }
- !host { id: vm, annotations: { authn-azure/subscription-id: sub, authn-azure/resource-group: rg, authn-azure/other/resource-group: no, authn-gcp/project-id: p1 } }
- !host { id: both, annotations: { authn-azure/subscription-id: sub, authn-azure/resource-group: rg, authn-azure/user-assigned-identity: mine, authn-azure/system-assigned-identity: oid-1 } }
- !host { id: given, annotations: { authn-azure/subscription-id: sub, authn-azure/resource-group: rg, authn-azure/user-assigned-identity: mine } }
- !host { id: far, restricted_to: [ 10.1.1.1 ], annotations: { authn-azure/subscription-id: sub, authn-azure/resource-group: rg } }
- !grant { role: !group conjur/authn-azure/prod/apps, members: [ !host vm, !host both, !host given, !host far ] }
- !grant { role: !group conjur/authn-gcp/apps, member: !host vm }
`

func TestHostsInClouds(t *testing.T) {
	issuer := cloudtest.NewIssuer(t, time.Now)
	s := open(t, Options{GoogleIssuer: issuer.URL})
	loadRoot(t, s, cloudPolicy)
	set(t, s, "conjur/authn-azure/prod/provider-uri", issuer.URL)
	azure := func(path string) map[string]any {
		return map[string]any{"iss": issuer.URL + "/", "aud": "anything", "oid": "oid-1", "xms_mirid": "/subscriptions/sub" + path}
	}
	machine := azure("/resourcegroups/rg/providers/Microsoft.Compute/virtualMachines/vm")
	gcp := func(audience string) map[string]any {
		return map[string]any{
			"iss": issuer.URL, "aud": audience, "sub": "42", "email": "a@b",
			"google": map[string]any{"compute_engine": map[string]any{"project_id": "p1", "instance_name": "i1"}},
		}
	}
	const onAzure, onGCP = "/authn-azure/prod/dev/host%2F", "/authn-gcp/dev"
	for name, c := range map[string]struct {
		path, token string
		status      int
	}{
		"a machine":                       {onAzure + "vm", issuer.Token(machine), 200},
		"an assigned identity":            {onAzure + "given", issuer.Token(azure("/resourcegroups/rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/mine")), 200},
		"another assigned identity":       {onAzure + "given", issuer.Token(azure("/resourcegroups/rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/other")), 401},
		"annotations for both identities": {onAzure + "both", issuer.Token(machine), 401},
		"another address":                 {onAzure + "far", issuer.Token(machine), 401},
		"another group":                   {onAzure + "vm", issuer.Token(azure("/resourcegroups/x/providers/A/B/C")), 401},
		"a path of another form":          {onAzure + "vm", issuer.Token(azure("")), 401},
		"another one's signature":         {onAzure + "vm", cloudtest.NewIssuer(t, time.Now).Token(machine), 401},
		"an instance":                     {onGCP, issuer.Token(gcp("conjur/dev/host/vm")), 200},
		"a user":                          {onGCP, issuer.Token(gcp("conjur/dev/admin")), 401},
		"another account":                 {onGCP, issuer.Token(gcp("conjur/other/host/vm")), 401},
		"another audience":                {onGCP, issuer.Token(gcp("vm")), 401},
		"no token":                        {onGCP, "", 400},
	} {
		if w := send(t, s, request{method: "POST", path: c.path + "/authenticate", body: "jwt=" + c.token}); w.Code != c.status {
			t.Errorf("%s: status %d, want %d", name, w.Code, c.status)
		}
	}
}
