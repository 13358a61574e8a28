package conjurd

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jwtlib "github.com/golang-jwt/jwt/v5"
)

// keyServer publishes a key set, and signs with its newest key.
type keyServer struct {
	*httptest.Server
	t       *testing.T
	now     func() time.Time
	kid     string
	set     atomic.Pointer[[]byte] // nil: down
	fetches atomic.Int64
	server  *Server
	silent  atomic.Pointer[chan struct{}] // when set, requests wait until it is closed
}

func newKeyServer(t *testing.T, now func() time.Time) *keyServer {
	k := &keyServer{t: t, now: now}
	k.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		k.fetches.Add(1)
		if wait := k.silent.Load(); wait != nil {
			<-*wait
		}
		if set := k.set.Load(); set != nil {
			_, _ = w.Write(*set)
			return
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	k.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are meant to fail
	k.StartTLS()
	t.Cleanup(k.Close)
	k.rotate("k1")
	return k
}

// rotate publishes the shared key under another id.
func (k *keyServer) rotate(kid string) {
	set, err := json.Marshal(map[string]any{"keys": []map[string]string{
		{"kty": "RSA", "kid": kid, "e": "AQAB", "n": base64.RawURLEncoding.EncodeToString(sharedKey().N.Bytes())}}})
	if err != nil {
		k.t.Fatal(err)
	}
	k.kid = kid
	k.set.Store(&set)
}

func (k *keyServer) token(more jwtlib.MapClaims) string {
	claims := jwtlib.MapClaims{"iss": "127.0.0.1", "sub": "sa", "name": "x", "exp": k.now().Unix() + 600}
	maps.Copy(claims, more)
	token := jwtlib.NewWithClaims(jwtlib.SigningMethodRS256, claims)
	token.Header["kid"] = k.kid
	text, err := token.SignedString(sharedKey())
	if err != nil {
		k.t.Fatal(err)
	}
	return text
}

const jwksPolicy = `
- !policy
  id: conjur/authn-jwt/svc
  body:
  - !webservice
  - !variable jwks-uri
  - !variable ca-cert
  - !variable token-app-property
  - !permit { role: !host /sa, privileges: [authenticate], resource: !webservice }
- !host { id: sa, annotations: { authn-jwt/svc/sub: sa } }
`

// withKeyServer returns a server whose JWT authenticator takes its keys from
// k, and a way to log in with a JWT of k's.
func withKeyServer(t *testing.T, clock func() time.Time) (k *keyServer, login func() int) {
	t.Helper()
	k = newKeyServer(t, clock)
	s := open(t, Options{Now: clock})
	k.server = s
	loadRoot(t, s, jwksPolicy)
	set(t, s, "conjur/authn-jwt/svc/jwks-uri", k.URL)
	set(t, s, "conjur/authn-jwt/svc/token-app-property", "sub")
	set(t, s, "conjur/authn-jwt/svc/ca-cert", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.Certificate().Raw})))
	return k, func() int {
		t.Helper()
		return send(t, s, request{method: "POST", path: "/authn-jwt/svc/dev/authenticate", body: "jwt=" + k.token(nil)}).Code
	}
}

func TestJWKSURIIsKeptFresh(t *testing.T) {
	now := time.Now()
	k, login := withKeyServer(t, func() time.Time { return now })
	for range 5 {
		if status := login(); status != 200 {
			t.Fatalf("status %d", status)
		}
	}
	if n := k.fetches.Load(); n != 1 {
		t.Errorf("%d fetches for five logins", n)
	}
	k.rotate("k2")
	now = now.Add(5*time.Second - 1)
	if status := login(); status != 401 {
		t.Errorf("a new key soon after a fetch: status %d", status)
	}
	now = now.Add(1)
	if status := login(); status != 200 {
		t.Errorf("a new key: status %d", status)
	}
	for range 50 { // keys that nobody has cost no fetch each
		k.kid = "k3"
		login()
	}
	if n := k.fetches.Load(); n != 2 {
		t.Errorf("%d fetches instead of 2", n)
	}
	k.kid = "k2"
	k.set.Store(nil)
	now = now.Add(5*time.Minute - 1)
	if status := login(); status != 200 {
		t.Errorf("with the key server down: status %d", status)
	}
	now = now.Add(1)
	if status := login(); status != 401 {
		t.Errorf("with keys too old: status %d", status)
	}
}

// Anybody can send a JWT, so what comes of it must not cost a request each.
func TestJWKSURIThatFailsIsNotAskedForEachLogin(t *testing.T) {
	now := time.Now()
	k, login := withKeyServer(t, func() time.Time { return now })
	good := *k.set.Swap(nil)
	logins := func() {
		t.Helper()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if status := login(); status != 401 {
					t.Errorf("status %d", status)
				}
			})
		}
		wg.Wait()
	}
	logins()
	if n := k.fetches.Load(); n != 1 {
		t.Errorf("%d fetches for 100 logins at once", n)
	}
	now = now.Add(5*time.Second - 1)
	logins()
	if n := k.fetches.Load(); n != 1 {
		t.Errorf("%d fetches before the end of the pause", n)
	}
	now = now.Add(1)
	logins()
	if n := k.fetches.Load(); n != 2 {
		t.Errorf("%d fetches after the pause", n)
	}
	k.set.Store(&good)
	now = now.Add(keySetPause)
	if status := login(); status != 200 {
		t.Errorf("with the key server up again: status %d", status)
	}
}

// Keys that are good serve on while unknown ones are asked for.
func TestJWKSURIThatIsSilentHoldsUpNoKnownKey(t *testing.T) {
	now := time.Now()
	k, login := withKeyServer(t, func() time.Time { return now })
	if status := login(); status != 200 {
		t.Fatalf("status %d", status)
	}
	now = now.Add(keySetPause)
	silent := make(chan struct{})
	k.silent.Store(&silent)
	token := k.token(nil)
	k.kid = "unknown"
	asked := make(chan int, 1)
	go func() { asked <- login() }()
	for k.fetches.Load() < 2 {
		runtime.Gosched()
	}
	if w := send(t, k.server, request{method: "POST", path: "/authn-jwt/svc/dev/authenticate", body: "jwt=" + token}); w.Code != 200 {
		t.Errorf("status %d", w.Code)
	}
	close(silent)
	if status := <-asked; status != 401 {
		t.Errorf("the unknown key: status %d", status)
	}
}

func TestJWKSURINeedsATrustedServer(t *testing.T) {
	k := newKeyServer(t, time.Now)
	s := open(t, Options{})
	loadRoot(t, s, jwksPolicy)
	ca, err := NewCA()
	if err != nil {
		t.Fatal(err)
	}
	set(t, s, "conjur/authn-jwt/svc/jwks-uri", k.URL)
	set(t, s, "conjur/authn-jwt/svc/token-app-property", "sub")
	for _, cert := range []string{string(ca.Cert), "no certificate"} {
		set(t, s, "conjur/authn-jwt/svc/ca-cert", cert)
		if w := send(t, s, request{method: "POST", path: "/authn-jwt/svc/dev/authenticate", body: "jwt=" + k.token(nil)}); w.Code != 401 {
			t.Errorf("status %d", w.Code)
		}
	}
}
