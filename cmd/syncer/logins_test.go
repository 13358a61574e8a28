package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/cloudtest"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/test/proctest"
)

// skew is a clock that can be set wrong.
type skew struct{ off atomic.Int64 }

func (s *skew) now() time.Time        { return time.Now().Add(time.Duration(s.off.Load())) }
func (s *skew) set(off time.Duration) { s.off.Store(int64(off)) }

// login is a world whose host logs in by one authenticator.
type login struct {
	*world
	authenticator string // such as authn-iam/prod
	annotated     string // the host's annotations
	conjur        skew   // Conjur's clock
}

// newLogin makes a world whose access tokens end soon, so that there are
// several logins.
func newLogin(t *testing.T, authenticator, host, annotations string, options ...conjurdtest.Option) *login {
	t.Helper()
	l := &login{authenticator: authenticator, annotated: annotations}
	l.world = newWorld(t, append(options, conjurdtest.TokenTTL(4*time.Second), conjurdtest.Clock(l.conjur.now))...)
	l.host = host
	delete(l.env, "CONJUR_AUTHN_API_KEY")
	l.env["CONJUR_AUTHN_URL"] = l.url + "/" + authenticator
	l.env["CONJUR_AUTHN_LOGIN"] = "host/" + host
	l.env["CONJUR_HTTP_TIMEOUT"] = "3"
	return l
}

// admit makes the host and sets up the authenticator.
func (l *login) admit(variables map[string]string) {
	l.t.Helper()
	l.makeHost()
	l.server.Enable(l.authenticator, variables, l.host)
}

func (l *login) makeHost() {
	l.t.Helper()
	l.server.Policy(fmt.Sprintf("- !host { id: %q, annotations: { %s } }\n", l.host, l.annotated))
}

// member grants the right to log in, or, by "!revoke", takes it away.
func (l *login) member(tag string) {
	l.t.Helper()
	l.server.Policy(fmt.Sprintf("- %s { role: !group conjur/%s/apps, member: !host %q }\n", tag, l.authenticator, l.host))
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

// parts are the worlds that share the troubles of one way to log in, since one
// world meets them one after the other.
const parts = 3

// inParts calls f for each of the parts at once.
func inParts(t *testing.T, f func(t *testing.T, part int)) {
	t.Helper()
	t.Parallel()
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			f(t, part)
		})
	}
}

// survives delivers before, while and after each trouble of the part: as it is
// for those that are none, else with everything left as it is.
func (l *login) survives(part int, troubles ...trouble) {
	l.t.Helper()
	l.group("db", "json", "db/password")
	p := l.start()
	l.await("db.json", l.value["db/password"])
	l.awaitProvided()
	troubles = append(troubles, l.always()...)
	slices.SortFunc(troubles, func(a, b trouble) int { return strings.Compare(a.name, b.name) })
	for i := part; i < len(troubles); i += parts {
		l.meets(p, troubles[i])
	}
	p.Stop()
	for _, form := range []string{"eyJ", "PRIVATE KEY", "AWS4-HMAC"} { // of a token, a key, a signature
		if strings.Contains(p.Log(), form) {
			l.t.Errorf("%q is in the log", form)
		}
	}
}

func (l *login) meets(p *proctest.Process, x trouble) {
	l.t.Helper()
	before, said := l.file("db.json"), len(p.Log())
	x.begin()
	if x.named == "" {
		logins := l.logins()
		eventually(l.t, "a login during the trouble "+x.name, func() bool { return l.logins() > logins+1 })
		l.await("db.json", l.renew("db/password"))
		x.end()
		return
	}
	// A warning is too early: the token before serves for the rest of its life.
	eventually(l.t, fmt.Sprintf("a poll that fails with %q, because of the trouble %s", x.named, x.name), func() bool {
		for line := range strings.Lines(p.Log()[said:]) {
			if strings.Contains(line, "Failing") && strings.Contains(line, x.named) {
				return true
			}
		}
		return false
	})
	logins := l.logins()
	l.renew("db/password")
	l.beat()
	l.beat()
	if got := l.file("db.json"); got != before {
		l.t.Errorf("%s: the file became %q", x.name, got)
	}
	if got := l.logins() - logins; x.unasked && got > 0 {
		l.t.Errorf("%s: Conjur was asked for %d tokens", x.name, got)
	}
	x.end()
	l.await("db.json", l.value["db/password"])
	p.MustRun()
}

// logins counts the requests for an access token.
func (l *login) logins() int64 { return l.server.Counts().Authentications }

// refuse has Conjur issue no tokens, until Intercept is called with nil. It returns
// what counts the requests for one.
func (l *login) refuse(status int) (asked func() int64) {
	var n atomic.Int64
	l.server.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/authn") {
				n.Add(1)
				rw.WriteHeader(status)
				return
			}
			next.ServeHTTP(rw, r)
		})
	})
	return n.Load
}

// always are the troubles of every way to log in.
func (l *login) always() []trouble {
	return []trouble{
		{name: "Conjur issues no tokens", begin: func() { l.refuse(http.StatusServiceUnavailable) }, end: func() { l.server.Intercept(nil) }, named: "the server answered 503"},
		{name: "the host is revoked", begin: func() { l.member("!revoke") }, end: func() { l.member("!grant") }, named: "the server answered 403"},
		{name: "the host is deleted", begin: func() { l.server.Policy(fmt.Sprintf("- !delete { record: !host %q }\n", l.host)) }, end: func() {
			l.makeHost()
			l.member("!grant")
			l.permit("db/password")
		}, named: "the server answered 401"},
	}
}

// clocks are troubles with clocks ten minutes off: this machine's, which is to
// say all others', and Conjur's alone. Own is what the log says of the first,
// ahead and behind what it says of Conjur's.
func (l *login) clocks(cloud *skew, own, ahead, behind string) (all []trouble) {
	for off, named := range map[time.Duration]string{10 * time.Minute: ahead, -10 * time.Minute: behind} {
		all = append(all,
			trouble{name: fmt.Sprint("a clock that is off by ", -off), named: own,
				begin: func() { cloud.set(off); l.conjur.set(off) }, end: func() { l.synchronize(cloud) }},
			trouble{name: fmt.Sprint("Conjur's clock is off by ", off), named: named,
				begin: func() { l.conjur.set(off) }, end: func() { l.conjur.set(0) }})
	}
	return all
}

// synchronize ends what is wrong with all clocks. What the cloud issued until then
// is not good for longer than it should be: Conjur refuses it once more, so that the
// process forgets it.
func (l *login) synchronize(cloud *skew) {
	l.t.Helper()
	cloud.set(0)
	asked := l.refuse(http.StatusUnauthorized)
	l.conjur.set(0)
	eventually(l.t, "a second log-in that is refused", func() bool { return asked() > 1 })
	l.server.Intercept(nil)
	l.await("db.json", l.renew("db/password"))
}

// metadata are the troubles with a metadata service; named is what the log says
// of each.
func metadata(t *testing.T, s *cloudtest.Service, named map[string]string) (all []trouble) {
	t.Helper()
	usual := func() { s.Answer(nil) }
	for name, h := range map[string]http.HandlerFunc{
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"redirecting": func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "http://127.0.0.1:1/", http.StatusFound)
		},
		"a page": answer(200, asHTML, page),
		"away":   answer(503, asHTML, page),
	} {
		all = append(all, trouble{name: "a metadata service that is " + name, begin: func() { s.Answer(h) }, end: usual, named: named[name], unasked: true})
	}
	return all
}

// slow is a metadata service that takes its time.
func slow(s *cloudtest.Service) trouble {
	return trouble{name: "a slow metadata service", begin: func() {
		s.Answer(func(rw http.ResponseWriter, r *http.Request) {
			wait(r, time.Second)
			s.Usual(rw, r)
		})
	}, end: func() { s.Answer(nil) }}
}
