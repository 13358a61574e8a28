package conformance

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd/cloudtest"
)

// Workloads simulates the environments of hosts that log in without a Conjur
// credential. The server must use these fakes instead of the real services.
type Workloads struct {
	AWS   *cloudtest.AWS
	Azure *cloudtest.Azure
	GCP   *cloudtest.GCP
	// Injected returns the last script that sh received in the container
	// "authenticator" of the Pod PodName. The Pod's service account is also
	// PodName.
	Injected func() []byte
}

// PodName is the name of the only Pod, and of its namespace.
const PodName = "conformance"

// workloadPolicy declares an authenticator of each kind. The group "in" may use
// them all.
const workloadPolicy = `
- !policy
  id: %[1]s
  body:
  - !webservice
  - !group apps
  - !permit { role: !group apps, privileges: [ read, authenticate ], resource: !webservice }
`

// configure configures an authenticator with the values of its variables, and
// creates hosts below the suite's branch. Hosts whose names begin with "out" may
// not use it.
func (s *suite) configure(t *testing.T, authenticator string, variables map[string]string, hosts map[string]string) {
	t.Helper()
	webservice := "conjur/" + authenticator
	var policy, own, grant strings.Builder
	fmt.Fprintf(&policy, workloadPolicy, webservice)
	for name := range variables {
		fmt.Fprintf(&policy, "  - !variable %s\n", name)
	}
	for id, rest := range hosts {
		fmt.Fprintf(&own, "- !host { id: %q%s }\n", "workloads/"+id, rest)
		if !strings.HasPrefix(id, "out") {
			fmt.Fprintf(&grant, "- !grant { role: !group %s/apps, member: !host %q }\n", webservice, branch+"/workloads/"+id)
		}
	}
	s.load(t, "root", policy.String())
	t.Cleanup(func() {
		for id := range hosts {
			s.do(t, exchange{as: s.admin(), req: "PATCH /policies/{a}/policy/root", body: fmt.Sprintf("- !delete { record: !host %q }\n", branch+"/workloads/"+id)})
		}
		s.do(t, exchange{as: s.admin(), req: "PATCH /policies/{a}/policy/root", body: "- !delete { record: !policy " + webservice + " }\n"})
	})
	s.load(t, branch, own.String())
	s.load(t, "root", grant.String())
	for name, value := range variables {
		res, body := s.do(t, exchange{as: s.admin(), req: "POST /secrets/{a}/variable/" + url.PathEscape(webservice+"/"+name), body: value})
		if res.StatusCode != 201 {
			t.Fatalf("setting %s: status %d, body %q", name, res.StatusCode, body)
		}
	}
}

// workloadHost returns the login of a host of configure, encoded for a path.
func workloadHost(id string) string { return url.PathEscape("host/" + branch + "/workloads/" + id) }

var (
	isGood     = answer{status: 200, kind: asJSON, match: isToken}
	badRequest = answer{status: 400, kind: asHTML}
)

// annotated returns annotations in policy syntax.
func annotated(pairs ...string) string {
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, fmt.Sprintf("%q: %q", pairs[i], pairs[i+1]))
	}
	return ", annotations: { " + strings.Join(all, ", ") + " }"
}

// unconfigured checks authenticators that no policy declares.
func (s *suite) unconfigured(t *testing.T) {
	for _, c := range []struct{ path, body string }{
		{"authn-iam/{p}-none/{a}/host%2Fx", "{}"}, {"authn-azure/{p}-none/{a}/host%2Fx", "jwt=a.b.c"},
		{"authn-k8s/{p}-none/{a}/host%2Fx", ""},
	} {
		s.run(t, exchange{name: c.path[:strings.Index(c.path, "/")], basis: read, req: "POST /" + c.path + "/authenticate", body: c.body, want: unauthorized})
	}
}

func (s *suite) iam(t *testing.T) {
	w := s.target.Workloads
	if w == nil {
		t.Log("the target asks no fake of AWS")
		return
	}
	const role = cloudtest.AWSAccount + "/" + cloudtest.AWSRole
	aws := w.AWS
	s.configure(t, "authn-iam/"+branch, map[string]string{"optional-signed-headers": "x-first;x-second"}, map[string]string{
		role: "", "out/" + role: "", "noted/" + role: annotated("authn-iam/anything", "x"), "other/" + role + "2": "",
		"999999999999/" + cloudtest.AWSRole: "", "far/" + role: ", restricted_to: [ 10.1.2.3 ]",
	})
	post := func(name, host, body string, want answer) exchange {
		return exchange{name: name, basis: read, req: "POST /authn-iam/{p}/{a}/" + workloadHost(host) + "/authenticate", body: body, want: want}
	}
	good := aws.Sign(cloudtest.PodKey, "eu-west-1")
	s.runAll(t, []exchange{
		post("good", role, good, isGood),
		post("us-east-1", role, aws.Sign(cloudtest.PodKey, "us-east-1"), isGood),
		post("the global address", role, aws.Sign(cloudtest.PodKey, "us-east-1", "Host", "sts.amazonaws.com"), isGood),
		post("a header that the variable allows", role, aws.Sign(cloudtest.PodKey, "eu-west-1", "X-Second", "x"), isGood),
		post("an annotation under the prefix", "noted/"+role, good, isGood),
		post("another header is signed", role, aws.Sign(cloudtest.PodKey, "eu-west-1", "X-Third", "x"), unauthorized),
		post("a region that is none", role, aws.Sign(cloudtest.PodKey, "moon"), unauthorized),
		post("another host than AWS's", role, strings.Replace(good, "amazonaws.com", "amazonaws.com.test", 1), unauthorized),
		post("a bad signature", role, strings.Replace(good, "Signature=", "Signature=0", 1), unauthorized),
		post("an unknown access key", role, aws.Sign("NOBODY", "eu-west-1"), unauthorized),
		post("a host of another role", "other/"+role+"2", good, unauthorized),
		post("a host of another account", "999999999999/"+cloudtest.AWSRole, good, unauthorized),
		post("no such host", "none/"+role, good, unauthorized),
		post("from another address", "far/"+role, good, unauthorized),
		post("no right", "out/"+role, good, forbidden),
		{name: "unknown service", basis: read, req: "POST /authn-iam/nope/{a}/" + workloadHost(role) + "/authenticate", body: good, want: unauthorized},
		{name: "unknown account", basis: read, req: "POST /authn-iam/{p}/nope/" + workloadHost(role) + "/authenticate", body: good, want: unauthorized},
	})
}

func (s *suite) azure(t *testing.T) {
	w := s.target.Workloads
	if w == nil {
		t.Log("the target asks no fake of Azure")
		return
	}
	of := func(service string, more ...string) string {
		return annotated(append([]string{"authn-azure/" + service + "subscription-id", cloudtest.Subscription, "authn-azure/" + service + "resource-group", cloudtest.ResourceGroup}, more...)...)
	}
	s.configure(t, "authn-azure/"+branch, map[string]string{"provider-uri": w.Azure.URL}, map[string]string{
		"machine": of(""), "service": of(branch+"/", "authn-azure/resource-group", "wrong"), "out": of(""), "plain": "",
		"system": of("", "authn-azure/system-assigned-identity", cloudtest.Object), "user": of("", "authn-azure/user-assigned-identity", "mine"),
		"half": annotated("authn-azure/subscription-id", cloudtest.Subscription), "misspelt": of("", "authn-azure/resource-groups", "x"),
	})
	post := func(name, host string, want answer, changes ...any) exchange {
		return exchange{name: name, basis: read, req: "POST /authn-azure/{p}/{a}/" + workloadHost(host) + "/authenticate",
			body: "jwt=" + w.Azure.Token(changed(w.Azure.Claims(), changes...)), want: want}
	}
	const assigned = "/subscriptions/" + cloudtest.Subscription + "/resourcegroups/" + cloudtest.ResourceGroup + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/mine"
	s.runAll(t, []exchange{
		post("good", "machine", isGood),
		post("the service's own annotations", "service", isGood),
		post("whatever the audience", "machine", isGood, "aud", "anybody"),
		post("the machine's own identity", "system", isGood),
		post("a user-assigned identity", "user", isGood, "xms_mirid", assigned),
		post("another object", "system", unauthorized, "oid", "x"),
		post("the other kind of identity", "user", unauthorized),
		post("another subscription", "machine", unauthorized, "xms_mirid", strings.Replace(assigned, cloudtest.Subscription, "x", 1)),
		post("no object", "machine", unauthorized, "oid", nil),
		post("no resource", "machine", unauthorized, "xms_mirid", nil),
		post("another issuer", "machine", unauthorized, "iss", "https://else.test/"),
		post("expired", "machine", unauthorized, "exp", 1),
		post("no annotations", "plain", unauthorized),
		post("one annotation of two", "half", unauthorized),
		post("an unknown annotation", "misspelt", unauthorized),
		post("no such host", "none", unauthorized),
		post("no right", "out", forbidden),
		{name: "no jwt", basis: read, req: "POST /authn-azure/{p}/{a}/" + workloadHost("machine") + "/authenticate", body: "token=x", want: badRequest},
		{name: "garbage", basis: read, req: "POST /authn-azure/{p}/{a}/" + workloadHost("machine") + "/authenticate", body: "jwt=a.b.c", want: unauthorized},
	})
}

func (s *suite) gcp(t *testing.T) {
	w := s.target.Workloads
	if w == nil {
		t.Log("the target asks no fake of Google")
		return
	}
	s.configure(t, "authn-gcp", nil, map[string]string{
		"project": annotated("authn-gcp/project-id", cloudtest.Project), "out": annotated("authn-gcp/project-id", cloudtest.Project),
		"instance": annotated("authn-gcp/project-id", cloudtest.Project, "authn-gcp/instance-name", cloudtest.Instance),
		"account":  annotated("authn-gcp/service-account-id", "42", "authn-gcp/service-account-email", "machine@"+cloudtest.Project),
		"bare":     annotated("authn-gcp/instance-name", cloudtest.Instance), "plain": "",
		"misspelt": annotated("authn-gcp/project-id", cloudtest.Project, "authn-gcp/project", "x"),
	})
	post := func(name, host string, want answer, changes ...any) exchange {
		claims := w.GCP.Claims()
		claims["aud"] = "conjur/" + s.target.Account + "/host/" + branch + "/workloads/" + host
		return exchange{name: name, basis: read, req: "POST /authn-gcp/{a}/authenticate", body: "jwt=" + w.GCP.Token(changed(claims, changes...)), want: want}
	}
	s.runAll(t, []exchange{
		post("good", "project", isGood),
		post("an instance", "instance", isGood),
		post("a service account", "account", isGood),
		post("another service account", "account", unauthorized, "sub", "43"),
		post("no word of the machine", "project", unauthorized, "google", nil),
		post("an instance alone", "bare", unauthorized),
		post("no annotations", "plain", unauthorized),
		post("an unknown annotation", "misspelt", unauthorized),
		post("another account in the audience", "project", unauthorized, "aud", "conjur/nope/host/"+branch+"/workloads/project"),
		post("another audience", "project", unauthorized, "aud", "https://else.test"),
		post("another issuer", "project", unauthorized, "iss", "https://else.test"),
		post("expired", "project", unauthorized, "exp", 1),
		post("no such host", "none", unauthorized),
		post("no right", "out", forbidden),
		{name: "no jwt", basis: read, req: "POST /authn-gcp/{a}/authenticate", want: badRequest},
		{name: "garbage", basis: read, req: "POST /authn-gcp/{a}/authenticate", body: "jwt=a.b.c", want: unauthorized},
	})
}

// changed returns claims with changes, as alternating names and values. nil removes
// a claim.
func changed(claims map[string]any, changes ...any) map[string]any {
	for i := 0; i < len(changes); i += 2 {
		name := changes[i].(string)
		if claims[name] = changes[i+1]; changes[i+1] == nil {
			delete(claims, name)
		}
	}
	return claims
}
