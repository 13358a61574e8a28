package conjurd

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/internal/store"
)

// Whoever replaces a branch needs the privilege update on everything in it, because
// the replacement can delete it.
func TestReplacingNeedsARightOverAllContents(t *testing.T) {
	const world = `
- !user eve
- !user owner
- !group ops
- !policy
  id: tp
  body: [ !variable kept, !policy { id: sub, body: [ !variable deep ] } ]
- !policy { id: theirs, owner: !user owner, body: [ !variable v ] }
- !policy { id: empty }
- !policy standing
- !policy { id: named, body: [ !user bob ] }
- !policy { id: part, body: [ !variable v ] }
- !policy { id: neighbor }
- !policy { id: neighbor-two, body: [ !variable v ] }
- !permit
  role: !user eve
  privileges: [read, create, update]
  resources: [ !policy tp, !policy tp/sub, !policy empty, !policy standing, !policy named, !policy part, !policy neighbor, !policy root, !variable part/v ]
`
	for _, strict := range []bool{false, true} {
		s := open(t, Options{Strict: strict})
		loadRoot(t, s, world)
		if _, err := s.LoadPolicy(t.Context(), Add, "standing", strings.NewReader("- !group\n")); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			as, method, branch string
			want               int
		}{
			{"eve", "PUT", "tp", 403},       // tp/kept
			{"eve", "PUT", "tp/sub", 403},   // tp/sub/deep
			{"eve", "PUT", "standing", 403}, // the group standing, which has the policy's own id
			{"eve", "PUT", "named", 403},    // bob@named, whose id does not begin with the policy's
			{"eve", "PUT", "root", 403},     // everything
			{"eve", "PUT", "theirs", 404},
			{"eve", "PUT", "empty", 201},
			{"eve", "PUT", "empty", 403}, // the policy owns the variable that eve loaded
			{"eve", "PUT", "part", 201},
			{"eve", "PUT", "neighbor", 201},
			{"owner", "PUT", "theirs", 201},
			{"eve", "PATCH", "tp", 201},
			{"eve", "POST", "tp", 201},
			{"admin", "PUT", "tp", 201},
			{"admin", "PUT", "root", 201},
		} {
			q := request{method: c.method, path: "/policies/dev/policy/" + c.branch, body: "- !variable alt\n", as: c.as}
			dry := q
			dry.path += "?dryRun=true"
			before := count(t, s)
			w := send(t, s, dry)
			if refused := c.want >= 400; refused && w.Code != c.want || !refused && w.Code != 200 {
				t.Errorf("strict %t: a dry run of %s %s by %s: status %d", strict, c.method, c.branch, c.as, w.Code)
			}
			if w := send(t, s, q); w.Code != c.want {
				t.Errorf("strict %t: %s %s by %s: status %d, want %d", strict, c.method, c.branch, c.as, w.Code, c.want)
			}
			if after := count(t, s); c.want >= 400 && after != before {
				t.Errorf("strict %t: a refused %s %s left %s instead of %s", strict, c.method, c.branch, after, before)
			}
		}
	}
}

func count(t *testing.T, s *Server) string {
	return send(t, s, request{method: "GET", path: "/resources/dev?count=true", as: "admin"}).Body.String()
}

// meanwhile is a body before whose end something happens.
type meanwhile struct {
	io.Reader
	happen func()
}

func (m *meanwhile) Read(p []byte) (int, error) {
	if m.happen != nil {
		m.happen()
		m.happen = nil
	}
	return m.Reader.Read(p)
}

// A right that ends while the body arrives permits nothing.
func TestRightsCountWhenThePolicyIsLoaded(t *testing.T) {
	for _, method := range []string{"POST", "PATCH", "PUT"} {
		s := open(t, Options{})
		const rights = "{ role: !user eve, privileges: [read, create, update], resource: !policy app }\n"
		loadRoot(t, s, "- !user eve\n- !policy app\n- !permit "+rights)
		body := &meanwhile{strings.NewReader("- !variable v\n"), func() { loadRoot(t, s, "- !deny "+rights) }}
		r := httptest.NewRequestWithContext(context.Background(), method, "/policies/dev/policy/app", body)
		r.Header.Set("Authorization", tokenFor(t, s, "eve"))
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code != http.StatusNotFound || count(t, s) != `{"count":4}` {
			t.Errorf("%s: status %d, %s objects", method, w.Code, count(t, s))
		}
	}
}

// A dry run neither waits for a writer nor keeps one waiting, and leaves nothing.
func TestDryRunsTakeNoPartInWriting(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, "- !policy app\n")
	token := tokenFor(t, s, "admin")
	err := s.store.Update(func(*store.Tx) error {
		w := send(t, s, request{method: "PUT", path: "/policies/dev/policy/root?dryRun=true", body: "- !host new\n", header: map[string]string{"Authorization": token}})
		if w.Code != 200 || !strings.Contains(w.Body.String(), "dev:host:new") || !strings.Contains(w.Body.String(), "dev:policy:app") {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := count(t, s); got != `{"count":3}` {
		t.Errorf("%s objects", got)
	}
}

// The effective policy is for members of its owner, within limits, and as far as
// they see it.
func TestEffectivePolicyHasLimits(t *testing.T) {
	s := open(t, Options{Strict: true})
	loadRoot(t, s, `
- !user reader
- !user owner
- !policy
  id: app
  owner: !user owner
  body: [ !variable b, !variable { id: a, annotations: { x: y } }, !group g, !policy { id: hidden, owner: !user /admin, body: [ !variable deep ] } ]
- !permit { role: !user reader, privileges: [ read, update ], resource: !policy app }
`)
	for _, c := range []struct {
		as, query string
		want      int
	}{
		{"owner", "", 200}, {"admin", "", 200}, {"reader", "", 403}, {"reader", "?depth=abc", 403},
		{"owner", "?depth=0", 200}, {"owner", "?depth=64", 200}, {"owner", "?depth=65", 400}, {"owner", "?depth=-1", 400}, {"owner", "?depth=abc", 400}, {"owner", "?depth=", 400}, {"owner", "?depth=1.5", 400},
		{"owner", "?limit=3", 422}, {"owner", "?limit=6", 422}, {"owner", "?limit=7", 200}, {"owner", "?limit=0", 422}, {"owner", "?limit=abc", 400}, {"owner", "?limit=-1", 400}, {"owner", "?limit=100001", 400}, {"owner", "?limit=100000", 200},
	} {
		if w := send(t, s, request{method: "GET", path: "/policies/dev/policy/app" + c.query, as: c.as}); w.Code != c.want {
			t.Errorf("%s by %s: status %d, want %d: %s", c.query, c.as, w.Code, c.want, w.Body)
		}
	}
	w := send(t, s, request{method: "GET", path: "/policies/dev/policy/app", as: "owner"})
	if body := w.Body.String(); strings.Contains(body, "hidden") || strings.Contains(body, "deep") || !strings.Contains(body, "- !variable b\n  - !group g\n") {
		t.Errorf("the owner sees\n%s", body)
	}
}

// A dry run gives the genuine server's position and advice for a fault.
func TestDryRunsAdvise(t *testing.T) {
	s := open(t, Options{Strict: true})
	for text, want := range map[string]string{
		"- !variable\n  id: a\n  kind b\n  mime_type: c\n":                 `"line":4,"column":3,"message":"could not find expected ':' while scanning a simple key\nThis error can occur when you have a missing ':' or missing space after ':'"`,
		"- !variable\n  id x\n  kind: y\n":                                 `"line":3,"column":7,"message":"mapping values are not allowed in this context\n"`,
		"- !nosuch x\n":                                                    `"line":1,"column":0,`,
		"- !permit\n  role: !user admin\n  privilege: read\n  resource:\n": `"message":"resource has a blank id\nEach resource must be identified using the 'id' field"`,
	} {
		w := send(t, s, request{method: "POST", path: "/policies/dev/policy/root?dryRun=true", body: text, as: "admin"})
		if w.Code != 422 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q: status %d: %s", text, w.Code, w.Body)
		}
	}
}

// A dry run is asked for in any case of letters, with spaces around.
func TestAnyTrueAsksForADryRun(t *testing.T) {
	for _, value := range []string{"true", "TRUE", "True", "%20true%0A"} {
		s := open(t, Options{})
		before := count(t, s)
		w := send(t, s, request{method: "POST", path: "/policies/dev/policy/root?dryRun=" + value, body: "- !variable v\n", as: "admin"})
		if w.Code != 200 || count(t, s) != before {
			t.Errorf("dryRun=%s: status %d, %s objects", value, w.Code, count(t, s))
		}
	}
}

// A dry run does not show what the caller must not see.
func TestDryRunsHideWhatTheCallerMayNotSee(t *testing.T) {
	s := open(t, Options{Strict: true})
	loadRoot(t, s, `
- !user eve
- !policy
  id: outer
  body:
  - !policy { id: mine, owner: !user /eve }
  - !group secret-team
  - !grant { role: !group secret-team, member: !user /eve }
- !policy { id: part, body: [ !variable concealed ] }
- !permit { role: !user eve, privileges: [ read, create, update ], resource: !policy part }
`)
	for path, hidden := range map[string]string{
		"POST outer/mine": `"identifier":"dev:policy:outer/mine","id":"outer/mine","type":"policy","owner":"dev:user:[REDACTED]","policy":"dev:policy:[REDACTED]"`,
		"PATCH part":      `"deleted":{"items":[{"identifier":"dev:variable:[REDACTED]","type":"variable"}]}`,
	} {
		method, branch, _ := strings.Cut(path, " ")
		body := "- !host new\n"
		if method == "PATCH" {
			body = "- !delete { record: !variable concealed }\n"
		}
		w := send(t, s, request{method: method, path: "/policies/dev/policy/" + branch + "?dryRun=true", body: body, as: "eve"})
		if w.Code != 200 || !strings.Contains(w.Body.String(), hidden) || strings.Contains(w.Body.String(), "concealed") {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
}
