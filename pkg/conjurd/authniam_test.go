package conjurd

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// sts answers as AWS does to those whose access key it knows.
type sts struct {
	*httptest.Server
	arns map[string]string // access key → ARN

	mu    sync.Mutex
	hosts []string // that were asked
	extra []string // header fields that came besides those of a client library
}

func newSTS(t *testing.T) *sts {
	f := &sts{arns: map[string]string{
		"ROLE":  "arn:aws:sts::123456789012:assumed-role/my-role/i-0123",
		"OTHER": "arn:aws:sts::123456789012:assumed-role/other-role/i-0123",
		"USER":  "arn:aws:iam::123456789012:user/my-role",
		"ROOT":  "arn:aws:iam::123456789012:root",
	}}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.hosts = append(f.hosts, r.Host)
		for name := range r.Header {
			if !slices.Contains([]string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "User-Agent", "Accept-Encoding", "Connection"}, name) {
				f.extra = append(f.extra, name)
			}
		}
		f.mu.Unlock()
		_, key, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		key, _, _ = strings.Cut(key, "/")
		switch arn, ok := f.arns[key]; {
		case r.URL.Query().Get("Action") != "GetCallerIdentity" || r.Method != http.MethodGet:
			w.WriteHeader(http.StatusBadRequest)
		case key == "PAGE":
			_, _ = w.Write([]byte("<html><p>sign in"))
		case key == "MOVED":
			http.Redirect(w, r, "/?moved", http.StatusFound)
		case !ok:
			w.WriteHeader(http.StatusForbidden)
		default:
			fmt.Fprintf(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>`+
				`<Arn>%s</Arn><UserId>A:i</UserId><Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, arn)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

// signed is a body as a client makes it.
func signed(key, region string, changes ...string) string {
	host := "sts." + region + ".amazonaws.com"
	fields := map[string]string{
		"Host": host, "X-Amz-Date": "20261122T070000Z", "X-Amz-Security-Token": "session",
		"Authorization": "AWS4-HMAC-SHA256 Credential=" + key + "/20261122/" + region + "/sts/aws4_request, SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=0",
	}
	for i := 0; i < len(changes); i += 2 {
		if fields[changes[i]] = changes[i+1]; changes[i+1] == "" {
			delete(fields, changes[i])
		}
	}
	text, _ := json.Marshal(maps.Clone(fields))
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
- !policy { id: app/999999999999, body: [ !host my-role ] }
- !policy { id: out/123456789012, body: [ !host my-role ] }
- !grant { role: !group conjur/authn-iam/prod/apps, members: [ !host app/123456789012/my-role, !host app/999999999999/my-role ] }
`

func TestIAM(t *testing.T) {
	const mine = "app/123456789012/my-role"
	f := newSTS(t)
	s := open(t, Options{STS: f.URL})
	loadRoot(t, s, iamPolicy)
	set(t, s, "conjur/authn-iam/prod/optional-signed-headers", "x-custom;x-more")
	extra := "AWS4-HMAC-SHA256 Credential=ROLE/20261122/eu-west-1/sts/aws4_request, SignedHeaders=host;x-amz-date;%s, Signature=0"
	for name, c := range map[string]struct {
		host, body string
		status     int
		asked      string // the hosts
	}{
		"a role":                      {mine, signed("ROLE", "eu-west-1"), 200, "sts.eu-west-1.amazonaws.com"},
		"a role in us-east-1":         {mine, signed("ROLE", "us-east-1"), 200, "sts.us-east-1.amazonaws.com"},
		"a role, global":              {mine, signed("ROLE", "us-east-1", "Host", "sts.amazonaws.com"), 200, "sts.amazonaws.com"},
		"a user of that name":         {mine, signed("USER", "eu-west-1"), 200, "sts.eu-west-1.amazonaws.com"},
		"an optional header":          {mine, signed("ROLE", "eu-west-1", "X-Custom", "x", "Authorization", fmt.Sprintf(extra, "x-custom")), 200, "sts.eu-west-1.amazonaws.com"},
		"another role":                {mine, signed("OTHER", "eu-west-1"), 401, "sts.eu-west-1.amazonaws.com"},
		"the account's root":          {mine, signed("ROOT", "eu-west-1"), 401, "sts.eu-west-1.amazonaws.com"},
		"another account":             {"app/999999999999/my-role", signed("ROLE", "eu-west-1"), 401, "sts.eu-west-1.amazonaws.com"},
		"no right":                    {"out/123456789012/my-role", signed("ROLE", "eu-west-1"), 403, "sts.eu-west-1.amazonaws.com"},
		"no such host":                {"no/123456789012/my-role", signed("ROLE", "eu-west-1"), 401, "sts.eu-west-1.amazonaws.com"},
		"a bad signature":             {mine, signed("NOBODY", "eu-west-1"), 401, "sts.eu-west-1.amazonaws.com"},
		"a bad signature, us-east-1":  {mine, signed("NOBODY", "us-east-1"), 401, "sts.us-east-1.amazonaws.com sts.us-east-1.amazonaws.com"},
		"a page instead":              {mine, signed("PAGE", "eu-west-1"), 401, "sts.eu-west-1.amazonaws.com"},
		"a redirect":                  {mine, signed("MOVED", "eu-west-1"), 401, "sts.eu-west-1.amazonaws.com"},
		"a region that is none":       {mine, signed("ROLE", "evil"), 401, ""},
		"another host":                {mine, signed("ROLE", "eu-west-1", "Host", "sts.eu-west-1.amazonaws.com.evil.test"), 401, ""},
		"a host below":                {mine, signed("ROLE", "eu-west-1", "Host", "evil.sts.eu-west-1.amazonaws.com"), 401, ""},
		"no host":                     {mine, signed("ROLE", "eu-west-1", "Host", ""), 401, ""},
		"no authorization":            {mine, signed("ROLE", "eu-west-1", "Authorization", ""), 401, ""},
		"a signed header not sent":    {mine, signed("ROLE", "eu-west-1", "X-Amz-Date", ""), 401, ""},
		"a signed header not allowed": {mine, signed("ROLE", "eu-west-1", "X-Evil", "x", "Authorization", fmt.Sprintf(extra, "x-evil")), 401, ""},
		"a header that nobody signed": {mine, signed("ROLE", "eu-west-1", "X-Evil", "x"), 200, "sts.eu-west-1.amazonaws.com"},
		"no JSON":                     {mine, "x", 401, ""},
		"nothing":                     {mine, "", 400, ""},
	} {
		f.hosts = nil
		w := send(t, s, request{method: "POST", path: "/authn-iam/prod/dev/host%2F" + strings.ReplaceAll(c.host, "/", "%2F") + "/authenticate", body: c.body})
		if w.Code != c.status || strings.Join(f.hosts, " ") != c.asked {
			t.Errorf("%s: status %d, asked %q; want %d, %q", name, w.Code, f.hosts, c.status, c.asked)
		}
	}
	if slices.Sort(f.extra); !slices.Equal(slices.Compact(f.extra), []string{"X-Custom"}) {
		t.Errorf("AWS was sent %q besides", f.extra)
	}
}
