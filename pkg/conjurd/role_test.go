package conjurd

import (
	"net/http"
	"testing"
)

// TestMembersTakeARightOverThePolicy that declared the role, and sight of the role.
func TestMembersTakeARightOverThePolicy(t *testing.T) {
	s := open(t, Options{Strict: true})
	loadRoot(t, s, `
- !user maker
- !user changer
- !user reader
- !user blind
- !policy
  id: dev
  body:
  - !group ops
- !permit { role: !user maker, privileges: [ create ], resource: !policy root }
- !permit { role: !user changer, privileges: [ update ], resource: !policy root }
- !permit { role: !user changer, privileges: [ create, update ], resource: !policy dev }
- !permit { role: !user maker, privileges: [ read ], resource: !group dev/ops }
- !permit { role: !user changer, privileges: [ read ], resource: !group dev/ops }
- !permit { role: !user reader, privileges: [ read ], resource: !group dev/ops }
- !permit { role: !user blind, privileges: [ create, update ], resource: !policy root }
`)
	const member = "/roles/dev/group/dev%2Fops?members&member=dev:user:reader"
	for _, c := range []struct {
		as, method string
		want       int
	}{
		{"blind", "POST", 404}, {"reader", "POST", 403}, {"changer", "POST", 403}, {"maker", "POST", 204},
		{"blind", "DELETE", 404}, {"reader", "DELETE", 403}, {"maker", "DELETE", 403}, {"changer", "DELETE", 204}, {"changer", "DELETE", 404},
	} {
		if w := send(t, s, request{method: c.method, path: member, as: c.as}); w.Code != c.want {
			t.Errorf("%s by %s: status %d, want %d", c.method, c.as, w.Code, c.want)
		}
	}
	if w := send(t, s, request{method: "POST", path: "/roles/dev/group/dev%2Fops", as: "maker"}); w.Code != http.StatusNotFound {
		t.Errorf("without what to do: status %d", w.Code)
	}
}
