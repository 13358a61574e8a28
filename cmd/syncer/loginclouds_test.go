package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/pkg/conjurd/cloudtest"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

func TestLoginOnAzure(t *testing.T) {
	inParts(t, func(t *testing.T, part int) {
		var cloud skew
		azure := cloudtest.NewAzure(t, cloud.now)
		l := newLogin(t, "authn-azure/prod", "app",
			"authn-azure/subscription-id: "+cloudtest.Subscription+", authn-azure/resource-group: "+cloudtest.ResourceGroup)
		l.admit(map[string]string{"provider-uri": azure.URL})
		l.env["CONJUR_AUTHN_METADATA_URL"] = azure.Metadata.URL
		troubles := append(l.clocks(&cloud, "", refused, ""), metadata(t, azure.Metadata, ofMetadata("Azure's", azure.Metadata))...)
		l.survives(part, append(troubles, slow(azure.Metadata),
			claim(azure.Issuer, "another issuer", "iss", "https://elsewhere.test/"),
			claim(azure.Issuer, "another machine", "xms_mirid", "/subscriptions/other/resourcegroups/"+cloudtest.ResourceGroup+"/providers/A/B/C"),
			claim(azure.Issuer, "an expired token", "exp", time.Now().Add(-time.Minute).Unix()))...)
	})
}

func TestLoginOnGCP(t *testing.T) {
	inParts(t, func(t *testing.T, part int) {
		var cloud skew
		gcp := cloudtest.NewGCP(t, cloud.now)
		l := newLogin(t, "authn-gcp", "app", "authn-gcp/project-id: "+cloudtest.Project,
			conjurdtest.With(func(o *conjurd.Options) { o.GoogleIssuer = gcp.URL }))
		l.admit(nil)
		l.env["CONJUR_AUTHN_METADATA_URL"] = gcp.Metadata.URL
		troubles := append(l.clocks(&cloud, "", refused, ""), metadata(t, gcp.Metadata, ofMetadata("Google Cloud's", gcp.Metadata))...)
		l.survives(part, append(troubles, slow(gcp.Metadata),
			claim(gcp.Issuer, "another audience", "aud", "conjur/other/host/app"),
			claim(gcp.Issuer, "another issuer", "iss", "https://elsewhere.test"),
			claim(gcp.Issuer, "no word of a machine", "google", map[string]any{}),
			claim(gcp.Issuer, "an expired token", "exp", time.Now().Add(-time.Minute).Unix()))...)
	})
}

// refused is what the log says when Conjur refuses a log-in, without its reason.
const refused = "the server answered 401"

// ofMetadata is what the log says of the troubles with a cloud's metadata
// service.
func ofMetadata(whose string, s *cloudtest.Service) map[string]string {
	at := whose + " metadata service at " + strings.TrimPrefix(s.URL, "http://") + ": "
	return map[string]string{
		"silent": at + "no complete answer", "redirecting": at + "it answered 302", "away": at + "it answered 503",
		"a page": whose + " metadata service: what came is no",
	}
}

// claim is a machine whose tokens claim something else.
func claim(i *cloudtest.Issuer, name, claim string, value any) trouble {
	usual := i.Claims()[claim]
	return trouble{name: name, begin: func() { i.Claim(claim, value) }, end: func() { i.Claim(claim, usual) }, named: refused}
}

// onAWS is a process in a Pod on AWS.
func onAWS(t *testing.T, cloud *skew) (*login, *cloudtest.AWS) {
	t.Helper()
	aws := cloudtest.NewAWS(t, cloud.now)
	aws.Life = 5 * time.Second
	l := newLogin(t, "authn-iam/prod", "apps/"+cloudtest.AWSAccount+"/"+cloudtest.AWSRole, "description: of a role",
		conjurdtest.With(func(o *conjurd.Options) { o.STS = aws.STS.URL }))
	l.admit(nil)
	l.values = append(l.values, aws.Secret)
	l.env["AWS_CONFIG_FILE"], l.env["AWS_SHARED_CREDENTIALS_FILE"] = os.DevNull, os.DevNull
	l.env["AWS_EC2_METADATA_DISABLED"], l.env["AWS_REGION"] = "true", "eu-central-1"
	return l, aws
}

func TestLoginOnAWS(t *testing.T) {
	inParts(t, func(t *testing.T, part int) {
		var cloud skew
		l, aws := onAWS(t, &cloud)
		l.env["AWS_CONTAINER_CREDENTIALS_FULL_URI"], l.env["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = aws.Metadata.URL+"/pod", cloudtest.PodIdentity
		const keys = "AWS's credentials"
		troubles := append(l.clocks(&cloud, refused, "", ""), metadata(t, aws.Metadata, map[string]string{
			"silent": keys + ": none found", "redirecting": keys, "a page": "answered 200", "away": "answered 503",
		})...)
		for _, s := range metadata(t, aws.STS, map[string]string{"silent": "no complete answer within 3s", "redirecting": refused, "a page": refused, "away": refused}) {
			s.name, s.unasked = "AWS itself instead of "+s.name, false
			troubles = append(troubles, s)
		}
		l.survives(part, append(troubles, slow(aws.Metadata), slow(aws.STS))...)
	})
}

// A process that is started in a region that nobody accepts leaves everything
// as it is, and says so.
func TestLoginInAWrongRegion(t *testing.T) {
	t.Parallel()
	var cloud skew
	l, aws := onAWS(t, &cloud)
	l.env["AWS_ACCESS_KEY_ID"], l.env["AWS_SECRET_ACCESS_KEY"] = cloudtest.StaticKey, aws.Secret
	l.group("db", "json", "db/password")
	p := l.start()
	l.await("db.json", l.value["db/password"])
	p.Stop()
	before := l.file("db.json")
	for _, region := range []string{"us-iso-east-1", "cn-north-1", "mars-1"} {
		l.env["AWS_REGION"] = region
		l.renew("db/password")
		logins := l.logins()
		p := l.start()
		eventually(t, "a word on the region", func() bool { return len(p.Lines("Failing", region, "is not one that Conjur accepts")) > 0 })
		l.beat()
		p.Stop()
		if got := l.file("db.json"); got != before || l.logins() > logins {
			t.Errorf("%s: %d requests for a token, and the file is %q", region, l.logins()-logins, got)
		}
	}
}
