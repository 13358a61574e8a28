package conformance

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/url"
	"testing"
	"time"

	jwtlib "github.com/golang-jwt/jwt/v5"
)

// jwtPolicy declares an authenticator below the suite's branch, so its service id
// contains slashes. A request enables it.
const jwtPolicy = `
- !policy
  id: conjur/authn-jwt/syncer-conformance
  body:
  - !webservice
  - !variable public-keys
  - !variable issuer
  - !variable audience
  - !variable token-app-property
  - !variable identity-path
  - !group apps
  - !permit { role: !group apps, privileges: [ read, authenticate ], resource: !webservice }
`

const jwtHosts = `
- !host { id: jwt/system:serviceaccount:ns:sa, annotations: { authn-jwt/syncer-conformance/kubernetes.io/namespace: ns } }
- !host { id: jwt/system:serviceaccount:ns:plain }
- !host { id: jwt/system:serviceaccount:ns:poor }
`

// jwtGrant is loaded into the branch of the group.
const jwtGrant = `
- !grant
  role: !group conjur/authn-jwt/syncer-conformance/apps
  members: [ !host "syncer-conformance/jwt/system:serviceaccount:ns:sa", !host "syncer-conformance/jwt/system:serviceaccount:ns:plain" ]
`

const jwtIssuer = "https://issuer.local"

func (s *suite) jwt(t *testing.T) {
	if !s.target.JWT {
		t.Log("the target has no JWT authenticator for the suite")
		return
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s.load(t, "root", jwtPolicy)
	t.Cleanup(func() {
		s.do(t, exchange{as: s.admin(), req: "PATCH /policies/{a}/policy/root", body: "- !delete { record: !policy conjur/authn-jwt/{p} }\n"})
	})
	s.load(t, branch, jwtHosts)
	s.load(t, "root", jwtGrant)
	good := func() jwtlib.MapClaims {
		now := time.Now().Unix()
		return jwtlib.MapClaims{"iss": jwtIssuer, "sub": "system:serviceaccount:ns:sa", "aud": "conjur", "iat": now, "nbf": now, "exp": now + 600,
			"kubernetes.io": map[string]any{"namespace": "ns"}}
	}
	with := func(name string, v any) jwtlib.MapClaims { c := good(); c[name] = v; return c }
	without := func(name string) jwtlib.MapClaims { c := good(); delete(c, name); return c }
	sign := func(c jwtlib.MapClaims) string { return signed(t, jwtlib.SigningMethodRS256, key, "k1", c) }
	post := func(name, token string, want answer) exchange {
		return exchange{name: name, req: "POST /authn-jwt/{p}/{a}/authenticate", body: "jwt=" + token,
			header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, want: want}
	}
	s.run(t, post("not configured", sign(good()), unauthorized))
	s.run(t, exchange{name: "switched on", as: s.admin(), req: "PATCH /authn-jwt/{p}/{a}", body: "enabled=true", want: answer{status: 204}})
	for name, value := range map[string]string{
		"public-keys": publicKeys(t, &key.PublicKey), "issuer": jwtIssuer, "audience": "conjur",
		"token-app-property": "sub", "identity-path": branch + "/jwt",
	} {
		s.do(t, exchange{as: s.admin(), req: "POST /secrets/{a}/variable/conjur%2Fauthn-jwt%2F{p}%2F" + name, body: value})
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour).Unix()
	future := time.Now().Add(time.Hour).Unix()
	s.runAll(t, []exchange{
		post("good", sign(good()), isGood),
		{name: "without a content type", req: "POST /authn-jwt/{p}/{a}/authenticate", body: "jwt=" + sign(good()), want: isGood},
		{name: "in base64", req: "POST /authn-jwt/{p}/{a}/authenticate", body: "jwt=" + sign(good()), header: map[string]string{"Accept-Encoding": "base64"},
			want: answer{status: 200, kind: asText, match: isEncodedToken, header: map[string]string{"Content-Encoding": "base64"}}},
		post("expired", sign(with("exp", past)), answer{status: 401, kind: asJSON, body: `{"error":{"code":"unauthorized","message":"CONJ00016E Token expired"}}`}),
		post("wrong issuer", sign(with("iss", "https://else.local")), unauthorized),
		post("wrong audience", sign(with("aud", "else")), unauthorized),
		post("wrong subject", sign(with("sub", "nobody")), unauthorized),
		post("wrong claim", sign(with("kubernetes.io", map[string]any{"namespace": "other"})), unauthorized),
		post("host without the privilege [features of 1.24.0]", sign(with("sub", "system:serviceaccount:ns:poor")), forbidden),
		post("host without annotations", sign(with("sub", "system:serviceaccount:ns:plain")), unauthorized),
		post("without an expiry", sign(without("exp")), unauthorized),
		post("not yet", sign(with("nbf", future)), unauthorized),
		post("wrong signature", signed(t, jwtlib.SigningMethodRS256, other, "k1", good()), unauthorized),
		post("wrong key id", signed(t, jwtlib.SigningMethodRS256, key, "k2", good()), unauthorized),
		post("alg none", signed(t, jwtlib.SigningMethodNone, jwtlib.UnsafeAllowNoneSignatureType, "k1", good()), unauthorized),
		post("HMAC with the public key", signed(t, jwtlib.SigningMethodHS256, []byte(publicKeys(t, &key.PublicKey)), "k1", good()), unauthorized),
		post("garbage", "a.b.c", unauthorized),
		post("empty", "", badRequest),
		{name: "no jwt", req: "POST /authn-jwt/{p}/{a}/authenticate", body: "token=x", want: badRequest},
		{name: "unknown service", req: "POST /authn-jwt/nope/{a}/authenticate", body: "jwt=" + sign(good()), want: unauthorized},
		{name: "unknown account", req: "POST /authn-jwt/{p}/nope/authenticate", body: "jwt=" + sign(good()), want: unauthorized},
		{name: "host in the path too", req: "POST /authn-jwt/{p}/{a}/" + url.PathEscape("host/"+branch+"/jwt/system:serviceaccount:ns:sa") + "/authenticate",
			body: "jwt=" + sign(good()), want: unauthorized},
		{name: "status without a webservice for it", as: s.admin(), req: "GET /authn-jwt/{p}/{a}/status", want: answer{status: 404, kind: asJSON,
			body: `{"status":"error","error":"#\u003cErrors::Authentication::Security::WebserviceNotFound: CONJ00005E Webservice 'authn-jwt/{p}/status' not found\u003e"}`}},
	})
	if !s.target.Ours { // a genuine server's settings may keep it enabled
		return
	}
	s.runAll(t, []exchange{
		{name: "switched off", as: s.admin(), req: "PATCH /authn-jwt/{p}/{a}", body: "enabled=false", want: answer{status: 204}},
		post("good, but switched off", sign(good()), unauthorized),
	})
}

func signed(t *testing.T, method jwtlib.SigningMethod, key any, kid string, claims jwtlib.MapClaims) string {
	t.Helper()
	token := jwtlib.NewWithClaims(method, claims)
	token.Header["kid"] = kid
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func publicKeys(t *testing.T, pub *rsa.PublicKey) string {
	t.Helper()
	enc := base64.RawURLEncoding.EncodeToString
	text, err := json.Marshal(map[string]any{"type": "jwks", "value": map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "k1", "n": enc(pub.N.Bytes()), "e": enc(big.NewInt(int64(pub.E)).Bytes()),
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
