package main

import (
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/notify"
)

// odd is a variable that no batch can ask for, so that the answer to a single
// question is put to the test too.
const odd = "app/odd,one"

// faultyWorld has files for a batch and for a single question, short lives of
// tokens and a short time for an answer.
func faultyWorld(t *testing.T, options ...conjurdtest.Option) *world {
	t.Helper()
	w := newWorld(t, append(options, conjurdtest.TokenTTL(2*time.Second))...)
	w.env["CONJUR_HTTP_TIMEOUT"] = "2"
	w.group("db", "json", "db/user", "db/password")
	w.group("web", "yaml", "web/password")
	w.group("odd", "bash", odd)
	w.annotations["conjur-secrets.odd"] = "- odd: " + odd + "\n"
	return w
}

// suffer runs a sidecar through a fault: it stays, its files stay, it says so
// once, and when the fault ends it recovers by itself.
func suffer(t *testing.T, w *world, begin, end func(), met func() bool) {
	t.Helper()
	p := w.start()
	w.settle()
	before := w.look()
	begin()
	for range 4 {
		w.beat()
		w.untouched(before)
	}
	eventually(t, "a word about the fault", func() bool { return len(p.Lines("Failing", `"poll"`)) > 0 })
	eventually(t, "the fault often enough", met)
	p.MustRun()
	w.untouched(before)
	end()
	db, single := w.renew("db/password"), w.renew(odd)
	w.await("db.json", db)
	w.await("odd.bash", single)
	words := func() []string { return p.Lines(`"subject": "poll"`) }
	eventually(t, "the end of what troubled the poll", func() bool { return len(words())%2 == 0 })
	p.Stop()
	said := words()
	for i, line := range said {
		// A machine with too much to do may have troubles of its own as well.
		if want := []string{"Failing", "Recovered"}[i%2]; !strings.Contains(line, want) {
			t.Errorf("the poll said %q; want one word when a trouble begins and one when it ends", said)
			break
		}
	}
	if len(said)%2 != 0 {
		t.Errorf("the last that the poll said is %q", said[len(said)-1])
	}
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*gate){
		"refused": (*gate).refuse,
		"dark":    (*gate).swallow,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := faultyWorld(t)
			g := newGate(w)
			suffer(t, w, func() { fault(g) }, g.open, func() bool { return true })
		})
	}
}

func TestServerThatComesLate(t *testing.T) {
	t.Parallel()
	w := faultyWorld(t)
	g := newGate(w)
	g.refuse()
	p := w.start()
	w.beat()
	w.beat()
	if w.exists("status", notify.ProvidedFile) {
		t.Error("provided without a server")
	}
	g.open()
	w.awaitProvided()
	p.Stop()
}

// TestFileLostInTheDark comes back when the server does.
func TestFileLostInTheDark(t *testing.T) {
	t.Parallel()
	w := faultyWorld(t)
	g := newGate(w)
	p := w.start()
	w.awaitProvided()
	g.refuse()
	if err := os.Remove(w.path("secrets", "db.json")); err != nil {
		t.Fatal(err)
	}
	w.beat()
	w.beat()
	g.open()
	w.await("db.json", w.value["db/password"])
	p.Stop()
}

// TestPauseIsHonoured has a server that wants no request for a long time.
func TestPauseIsHonoured(t *testing.T) {
	t.Parallel()
	for _, concerned := range []struct {
		name string
		is   func(*http.Request) bool
	}{{"data", isData}, {"authentication", isLogin}} {
		t.Run(concerned.name, func(t *testing.T) {
			t.Parallel()
			w := faultyWorld(t)
			p := w.start()
			w.settle()
			var met atomic.Int64
			busy := answer(429, asHTML, "", "Retry-After", "200")
			w.server.Intercept(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if concerned.is(r) {
						met.Add(1)
						busy.ServeHTTP(rw, r)
						return
					}
					next.ServeHTTP(rw, r)
				})
			})
			eventually(t, "the wish for a pause", func() bool { return met.Load() > 0 })
			w.beat() // a request under way beside it may still come
			w.server.ResetCounts()
			for range 4 {
				w.beat()
			}
			if n := w.server.Counts(); n != (conjurdtest.Counts{}) {
				t.Errorf("requests in the pause: %+v", n)
			}
			p.Stop()
		})
	}
}

// TestFaultRemovesNothing meets every fault with the data and with the
// authentication.
func TestFaultRemovesNothing(t *testing.T) {
	t.Parallel()
	for path, concerned := range map[string]func(*http.Request) bool{
		"data":           func(r *http.Request) bool { return !isLogin(r) },
		"authentication": isLogin,
	} {
		for name, fault := range faults() {
			t.Run(path+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := faultyWorld(t)
				sufferAnswers(t, w, concerned, fault)
			})
		}
	}
}

// sufferAnswers has the fault answer the requests concerned.
func sufferAnswers(t *testing.T, w *world, concerned func(*http.Request) bool, fault http.HandlerFunc) {
	t.Helper()
	sufferIntercepted(t, w, func(r *http.Request) http.Handler {
		if concerned(r) {
			return fault
		}
		return nil
	})
}

// sufferIntercepted has fault choose who answers in the server's place; nil
// for nobody.
func sufferIntercepted(t *testing.T, w *world, fault func(*http.Request) http.Handler) {
	t.Helper()
	var met atomic.Int64
	begin := func() {
		w.server.Intercept(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				h := fault(r)
				if h == nil {
					h = next
				} else {
					met.Add(1)
				}
				h.ServeHTTP(rw, r)
			})
		})
	}
	suffer(t, w, begin, func() { w.server.Intercept(nil) }, func() bool { return met.Load() >= 3 })
}

// TestSpoiltAnswerChangesNothing has answers 200 that are not Conjur's, to
// questions for a batch and to questions for a single variable.
func TestSpoiltAnswerChangesNothing(t *testing.T) {
	t.Parallel()
	for name, spoilt := range map[string]http.HandlerFunc{
		"garbage":         answer(200, asJSON, "\x00\xff\x1f garbage", "Content-Encoding", "base64"),
		"half":            answer(200, asJSON, `{"dev:variable:db/password":"Y2h`, "Content-Encoding", "base64"),
		"empty":           answer(200, asJSON, "", "Content-Encoding", "base64"),
		"no values":       answer(200, asJSON, "{}", "Content-Encoding", "base64"),
		"other types":     answer(200, asJSON, `{"dev:variable:db/password":["Y2h"]}`, "Content-Encoding", "base64"),
		"portal, a page":  answer(200, asHTML, page),
		"portal, a text":  answer(200, "text/plain", "please sign in"),
		"portal, JSON":    answer(200, asJSON, `{"login":"https://127.0.0.1/"}`),
		"portal, a file":  answer(200, "application/octet-stream", "please sign in", "Content-Disposition", `attachment; filename="login.txt"`),
		"portal, a cache": answer(200, "application/octet-stream", "please sign in", "ETag", `W/"00112233445566778899aabbccddeeff"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sufferAnswers(t, faultyWorld(t), isData, spoilt)
		})
	}
}

// TestHalfAProofRemovesNothing has Conjur's own words about a variable that is
// there, but not all of what a proof needs.
func TestHalfAProofRemovesNothing(t *testing.T) {
	t.Parallel()
	gone := conjur00076("dev", odd)
	isCheck := func(r *http.Request) bool { return r.URL.Query().Has("check") }
	isWhoami := func(r *http.Request) bool { return r.URL.Path == "/whoami" }
	for name, c := range map[string]struct{ data, check, whoami http.HandlerFunc }{
		"404, but nobody knows us":         {data: gone, whoami: answer(401, asHTML, "")},
		"404, but a page for whoami":       {data: gone, whoami: answer(200, asHTML, page)},
		"404, but another account":         {data: gone, whoami: answer(200, asJSON, `{"account":"other","username":"host/app"}`)},
		"403, but the privilege is there":  {data: answer(403, asHTML, "")},
		"403, and a page for the check":    {data: answer(403, asHTML, ""), check: answer(404, asHTML, page)},
		"403, but nobody knows us":         {data: answer(403, asHTML, ""), check: answer(404, asHTML, ""), whoami: answer(401, asHTML, "")},
		"403 with a body, check agrees":    {data: answer(403, asHTML, page), check: answer(404, asHTML, "")},
		"404 with a page, whoami is right": {data: answer(404, asHTML, page)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := faultyWorld(t, conjurdtest.Strict())
			sufferIntercepted(t, w, func(r *http.Request) http.Handler {
				switch {
				case isData(r):
					return c.data
				case isCheck(r) && c.check != nil:
					return c.check
				case isWhoami(r) && c.whoami != nil:
					return c.whoami
				}
				return nil
			})
		})
	}
}

// TestTokenThatExpiredIsReplaced lets the server's clock run ahead, so that it
// refuses a token that looks good to its owner.
func TestTokenThatExpiredIsReplaced(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	w := newWorld(t, conjurdtest.Clock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
	w.group("db", "json", "db/password")
	p := w.start()
	w.settle()
	w.server.ResetCounts()
	ahead.Store(int64(time.Hour))
	w.await("db.json", w.renew("db/password"))
	if n := w.server.Counts().Authentications; n != 1 {
		t.Errorf("%d authentications for one expired token", n)
	}
	if failing := p.Lines("Failing"); len(failing) != 0 {
		t.Errorf("a renewal is no failure: %q", failing)
	}
	p.Stop()
}
