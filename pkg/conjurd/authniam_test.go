package conjurd

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/cloudtest"
)

// changed is a body as a client makes it, with fields changed or, by "", left
// out after it was signed.
func changed(t *testing.T, body string, changes ...string) string {
	t.Helper()
	var fields map[string]string
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(changes); i += 2 {
		if fields[changes[i]] = changes[i+1]; changes[i+1] == "" {
			delete(fields, changes[i])
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const iamPolicy = `
- !policy
  id: conjur/authn-iam/prod
  body:
  - !webservice
  - !variable optional-signed-headers
  - !group apps
  - !permit { role: !group apps, privileges: [read, authenticate], resource: !webservice }
- !policy { id: app/123456789012, body: [ !host my-role ] }
- !grant { role: !group conjur/authn-iam/prod/apps, member: !host app/123456789012/my-role }
`

// TestIAM has what the package conformance leaves out.
func TestIAM(t *testing.T) {
	aws := cloudtest.NewAWS(t, time.Now)
	for key, arn := range map[string]string{
		"ROLE": "arn:aws:sts::123456789012:assumed-role/my-role/i-0123",
		"USER": "arn:aws:iam::123456789012:user/my-role",
		"ROOT": "arn:aws:iam::123456789012:root",
	} {
		aws.ARNs[key] = arn
	}
	s := open(t, Options{STS: aws.STS.URL})
	loadRoot(t, s, iamPolicy)
	set(t, s, "conjur/authn-iam/prod/optional-signed-headers", "x-custom;x-more")
	good := aws.Sign("ROLE", "eu-west-1")
	page := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html><p>sign in")) }
	moved := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/?moved", http.StatusFound) }
	closed := func(w http.ResponseWriter, _ *http.Request) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
	}
	const europe, america = "sts.eu-west-1.amazonaws.com", "sts.us-east-1.amazonaws.com"
	var besides []string // header fields that AWS was sent and needs not
	for name, c := range map[string]struct {
		body   string
		status int
		asked  string // the hosts
		aws    http.HandlerFunc
	}{
		"a role":                      {good, 200, europe, nil},
		"an optional header":          {aws.Sign("ROLE", "eu-west-1", "X-Custom", "x"), 200, europe, nil},
		"a user of that name":         {aws.Sign("USER", "eu-west-1"), 200, europe, nil},
		"the account's root":          {aws.Sign("ROOT", "eu-west-1"), 401, europe, nil},
		"an unknown key, us-east-1":   {aws.Sign("NOBODY", "us-east-1"), 401, america + " " + america, nil},
		"a page instead":              {good, 401, europe, page},
		"a redirect":                  {good, 401, europe, moved},
		"no answer":                   {good, 401, europe, closed},
		"another region's signature":  {changed(t, good, "Host", america), 401, america + " " + america, nil},
		"another host":                {changed(t, good, "Host", europe+".evil.test"), 401, "", nil},
		"a host below":                {changed(t, good, "Host", "evil."+europe), 401, "", nil},
		"no host":                     {changed(t, good, "Host", ""), 401, "", nil},
		"no authorization":            {changed(t, good, "Authorization", ""), 401, "", nil},
		"a signed header not sent":    {changed(t, good, "X-Amz-Date", ""), 401, "", nil},
		"a header that nobody signed": {changed(t, good, "X-Evil", "x"), 200, europe, nil},
		"no JSON":                     {"x", 401, "", nil},
		"nothing":                     {"", 400, "", nil},
	} {
		aws.STS.Answer(c.aws)
		w := send(t, s, request{method: "POST", path: "/authn-iam/prod/dev/host%2Fapp%2F123456789012%2Fmy-role/authenticate", body: c.body})
		var asked []string
		for _, r := range aws.STS.Log() {
			asked = append(asked, r.Host)
			for name := range r.Header {
				if !slices.Contains([]string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "User-Agent", "Accept-Encoding", "Connection"}, name) {
					besides = append(besides, name)
				}
			}
		}
		if w.Code != c.status || strings.Join(asked, " ") != c.asked {
			t.Errorf("%s: status %d, asked %q; want %d, %q", name, w.Code, asked, c.status, c.asked)
		}
	}
	if slices.Sort(besides); !slices.Equal(slices.Compact(besides), []string{"X-Custom"}) {
		t.Errorf("AWS was sent %q besides", besides)
	}
}
