package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/pkg/conjurd/cloudtest"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/proctest"
)

// login is a world whose host logs in by one authenticator.
type login struct {
	*world
	authenticator string // such as authn-iam/prod
	annotated     string // the host's annotations
}

// newLogin makes a world whose access tokens end soon, so that there are
// several logins.
func newLogin(t *testing.T, authenticator, host, annotations string, options ...conjurdtest.Option) *login {
	t.Helper()
	l := &login{authenticator: authenticator, annotated: annotations}
	l.world = newWorld(t, append(options, conjurdtest.TokenTTL(4*time.Second))...)
	l.Host = host
	delete(l.Env, "CONJUR_AUTHN_API_KEY")
	l.Env["CONJUR_AUTHN_URL"] = l.Env["CONJUR_APPLIANCE_URL"] + "/" + authenticator
	l.Env["CONJUR_AUTHN_LOGIN"] = "host/" + host
	l.Env["CONJUR_HTTP_TIMEOUT"] = "3"
	return l
}

// admit makes the host and sets up the authenticator.
func (l *login) admit(variables map[string]string) {
	l.Helper()
	l.Server.Policy(fmt.Sprintf("- !host { id: %q, annotations: { %s } }\n", l.Host, l.annotated))
	l.Server.Enable(l.authenticator, variables, l.Host)
}

// member grants the right to log in, or, by "!revoke", takes it away.
func (l *login) member(tag string) {
	l.Helper()
	l.Server.Policy(fmt.Sprintf("- %s { role: !group conjur/%s/apps, member: !host %q }\n", tag, l.authenticator, l.Host))
}

// trouble is something that happens to a log-in.
type trouble struct {
	name       string
	begin, end func()
	// named is what the log says of it; empty: it is none, and deliveries go on.
	named string
	// unasked: Conjur hears nothing of it.
	unasked bool
}

// survives delivers before, while and after each trouble: as it is for those that
// are none, else with everything left as it is. Which troubles there are is tested
// where they are told apart, in pkg/conjur/authn, pkg/conjur and pkg/conjurd.
func (l *login) survives(troubles ...trouble) {
	l.Helper()
	l.Group("db", "json", "db/password")
	p := l.start()
	l.await("db.json", l.Value["db/password"])
	l.awaitProvided()
	troubles = append(troubles, trouble{
		name: "the host is revoked", begin: func() { l.member("!revoke") }, end: func() { l.member("!grant") }, named: "the server answered 403",
	})
	for _, x := range troubles {
		l.meets(p, x)
	}
	p.Stop()
	for _, form := range []string{"eyJ", "PRIVATE KEY", "AWS4-HMAC"} { // of a token, a key, a signature
		if strings.Contains(p.Log(), form) {
			l.Errorf("%q is in the log", form)
		}
	}
}

func (l *login) meets(p *proctest.Process, x trouble) {
	l.Helper()
	before, said := l.file("db.json"), len(p.Log())
	x.begin()
	if x.named == "" {
		logins := l.logins()
		eventually(l, "a login during the trouble "+x.name, func() bool { return l.logins() > logins+1 })
		l.await("db.json", l.Renew("db/password"))
		x.end()
		return
	}
	// A warning is too early: the token before serves for the rest of its life.
	eventually(l, fmt.Sprintf("a poll that fails with %q, because of the trouble %s", x.named, x.name), func() bool {
		for line := range strings.Lines(p.Log()[said:]) {
			if strings.Contains(line, "Failing") && strings.Contains(line, x.named) {
				return true
			}
		}
		return false
	})
	logins := l.logins()
	l.Renew("db/password")
	l.beat()
	l.beat()
	if got := l.file("db.json"); got != before {
		l.Errorf("%s: the file became %q", x.name, got)
	}
	if got := l.logins() - logins; x.unasked && got > 0 {
		l.Errorf("%s: Conjur was asked for %d tokens", x.name, got)
	}
	x.end()
	l.await("db.json", l.Value["db/password"])
	p.MustRun()
}

// logins counts the requests for an access token.
func (l *login) logins() int64 { return l.Server.Counts().Authentications }

// away is a metadata service that answers 503; the log says of it what named is.
func away(s *cloudtest.Service, named string) trouble {
	return trouble{
		name: "a metadata service that is away", begin: func() { s.Answer(answer(503, asHTML, page)) }, end: func() { s.Answer(nil) },
		named: named, unasked: true,
	}
}

// refused is what the log says when Conjur refuses a log-in, without its reason.
const refused = "the server answered 401"

func TestLoginOnAzure(t *testing.T) {
	t.Parallel()
	azure := cloudtest.NewAzure(t, time.Now)
	l := newLogin(t, "authn-azure/prod", "app",
		"authn-azure/subscription-id: "+cloudtest.Subscription+", authn-azure/resource-group: "+cloudtest.ResourceGroup)
	l.admit(map[string]string{"provider-uri": azure.URL})
	l.Env["CONJUR_AUTHN_METADATA_URL"] = azure.Metadata.URL
	l.survives(away(azure.Metadata, "Azure's metadata service at "+strings.TrimPrefix(azure.Metadata.URL, "http://")+": it answered 503"))
}

func TestLoginOnGCP(t *testing.T) {
	t.Parallel()
	gcp := cloudtest.NewGCP(t, time.Now)
	l := newLogin(t, "authn-gcp", "app", "authn-gcp/project-id: "+cloudtest.Project,
		conjurdtest.With(func(o *conjurd.Options) { o.GoogleIssuer = gcp.URL }))
	l.admit(nil)
	l.Env["CONJUR_AUTHN_METADATA_URL"] = gcp.Metadata.URL
	l.survives(away(gcp.Metadata, "Google Cloud's metadata service at "+strings.TrimPrefix(gcp.Metadata.URL, "http://")+": it answered 503"))
}

func TestLoginOnAWS(t *testing.T) {
	t.Parallel()
	aws := cloudtest.NewAWS(t, time.Now)
	aws.Life = 5 * time.Second
	l := newLogin(t, "authn-iam/prod", "apps/"+cloudtest.AWSAccount+"/"+cloudtest.AWSRole, "description: of a role",
		conjurdtest.With(func(o *conjurd.Options) { o.STS = aws.STS.URL }))
	l.admit(nil)
	l.Canaries = append(l.Canaries, aws.Secret)
	l.Env["AWS_CONFIG_FILE"], l.Env["AWS_SHARED_CREDENTIALS_FILE"] = os.DevNull, os.DevNull
	l.Env["AWS_EC2_METADATA_DISABLED"], l.Env["AWS_REGION"] = "true", "eu-central-1"
	l.Env["AWS_CONTAINER_CREDENTIALS_FULL_URI"], l.Env["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = aws.Metadata.URL+"/pod", cloudtest.PodIdentity
	l.survives(away(aws.Metadata, "answered 503"))
}

func TestLoginByJWT(t *testing.T) {
	t.Parallel()
	l := newLogin(t, "authn-jwt/kubernetes", "apps/app", "")
	l.Server.EnableJWT("kubernetes", "apps", "app")
	delete(l.Env, "CONJUR_AUTHN_LOGIN")
	l.Env["JWT_TOKEN_PATH"] = l.Path("token")
	project := func(life time.Duration) { // as the kubelet does, at once
		token := l.Server.MintJWT("app", life, nil)
		l.Canaries = append(l.Canaries, token) // no more to be seen than a value
		l.write(l.Path("token.new"), token+"\n")
		if err := os.Rename(l.Path("token.new"), l.Path("token")); err != nil {
			t.Fatal(err)
		}
	}
	usual := func() { project(time.Hour) }
	usual()
	l.survives(
		trouble{name: "a replaced token", begin: usual, end: usual},
		trouble{name: "a token that is not replaced in time", begin: func() { project(-time.Minute) }, end: usual, named: refused},
	)
}
