package main

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
)

// jwtWorld authenticates by a JWT file that a kubelet would project.
func jwtWorld(t *testing.T, options ...conjurdtest.Option) *world {
	t.Helper()
	w := newWorld(t, options...)
	w.server.EnableJWT("kubernetes", "apps", "app")
	w.host = "apps/app"
	delete(w.env, "CONJUR_AUTHN_LOGIN")
	delete(w.env, "CONJUR_AUTHN_API_KEY")
	w.env["CONJUR_AUTHN_URL"] = w.server.URL + "/authn-jwt/kubernetes"
	w.env["JWT_TOKEN_PATH"] = w.path("token")
	w.group("db", "json", "db/password")
	return w
}

// project replaces the JWT file as the kubelet does, at once, by one that
// lives so long.
func (w *world) project(life time.Duration) (token string) {
	w.t.Helper()
	token = w.server.MintJWT("app", life, nil)
	w.values = append(w.values, token) // no more to be seen than a value
	w.write(w.path("token.new"), token+"\n")
	if err := os.Rename(w.path("token.new"), w.path("token")); err != nil {
		w.t.Fatal(err)
	}
	return token
}

func TestJWTDelivers(t *testing.T) {
	t.Parallel()
	w := jwtWorld(t)
	w.oneShot("init", 0)
	w.project(time.Hour)
	w.start().Exit(0)
	w.await("db.json", w.value["db/password"])
}

// TestReplacedJWTIsUsed lets the server's clock run ahead until both the JWT
// and the access token have expired. While the file holds the old one, nothing
// is lost; with the new one all goes on.
func TestReplacedJWTIsUsed(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	w := jwtWorld(t, conjurdtest.Clock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
	old := w.project(time.Hour)
	var sent atomic.Pointer[string]
	w.server.Intercept(recordJWT(&sent))
	p := w.start()
	w.settle()
	if got := sent.Load(); got == nil || *got != old {
		t.Fatal("the first authentication did not use the file's JWT")
	}

	before := w.look()
	ahead.Store(int64(2 * time.Hour))
	eventually(t, "a word about the expired JWT", func() bool { return len(p.Lines("Failing", `"poll"`, "authenticate")) > 0 })
	w.beat()
	w.beat()
	w.untouched(before)

	replaced := w.project(4 * time.Hour)
	w.await("db.json", w.renew("db/password"))
	if *sent.Load() != replaced {
		t.Error("the last authentication did not use the new JWT")
	}
	p.Stop()
}

// TestJWTReplacedInTime replaces the file before the old one expires: nobody
// notices anything.
func TestJWTReplacedInTime(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	w := jwtWorld(t, conjurdtest.Clock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
	w.project(time.Hour)
	var sent atomic.Pointer[string]
	w.server.Intercept(recordJWT(&sent))
	p := w.start()
	w.settle()
	replaced := w.project(4 * time.Hour)
	ahead.Store(int64(2 * time.Hour))
	w.await("db.json", w.renew("db/password"))
	if *sent.Load() != replaced {
		t.Error("the last authentication did not use the new JWT")
	}
	if failing := p.Lines("Failing"); len(failing) > 0 {
		t.Errorf("a renewal is no failure: %s", failing[0])
	}
	p.Stop()
}

// recordJWT notes the JWT of each authentication.
func recordJWT(sent *atomic.Pointer[string]) conjurdtest.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if isLogin(r) {
				body, _ := io.ReadAll(r.Body)
				form, _ := url.ParseQuery(string(body))
				token := form.Get("jwt")
				sent.Store(&token)
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
			next.ServeHTTP(rw, r)
		})
	}
}
