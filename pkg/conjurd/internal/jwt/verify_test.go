package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"sync"
	"testing"
	"time"

	jwtlib "github.com/golang-jwt/jwt/v5"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func claims() jwtlib.MapClaims {
	return jwtlib.MapClaims{"iss": "me", "aud": []string{"conjur", "x"}, "sub": "s", "nbf": noon.Unix(), "exp": noon.Unix() + 60}
}

func sign(t *testing.T, method jwtlib.SigningMethod, key any, kid string, c jwtlib.MapClaims) string {
	t.Helper()
	token := jwtlib.NewWithClaims(method, c)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// jwks writes public keys as a key set.
func jwks(t *testing.T, keys map[string]crypto.PublicKey) []byte {
	t.Helper()
	enc := base64.RawURLEncoding.EncodeToString
	var list []map[string]string
	for kid, key := range keys {
		k := map[string]string{"kid": kid}
		switch pub := key.(type) {
		case *rsa.PublicKey:
			k["kty"], k["n"], k["e"] = "RSA", enc(pub.N.Bytes()), enc(big.NewInt(int64(pub.E)).Bytes())
		case *ecdsa.PublicKey:
			point, err := pub.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			half := len(point) / 2
			k["kty"], k["crv"], k["x"], k["y"] = "EC", pub.Params().Name, enc(point[1:1+half]), enc(point[1+half:])
		case ed25519.PublicKey:
			k["kty"], k["crv"], k["x"] = "OKP", "Ed25519", enc(pub)
		}
		list = append(list, k)
	}
	text, err := json.Marshal(map[string]any{"keys": list})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestVerifyAlgorithms(t *testing.T) {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	edPublic, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public := map[string]crypto.PublicKey{"rsa": &r.PublicKey, "ed": edPublic}
	curves := map[string]*ecdsa.PrivateKey{}
	for name, c := range map[string]elliptic.Curve{"p256": elliptic.P256(), "p384": elliptic.P384(), "p521": elliptic.P521()} {
		if curves[name], err = ecdsa.GenerateKey(c, rand.Reader); err != nil {
			t.Fatal(err)
		}
		public[name] = &curves[name].PublicKey
	}
	keys, err := ParseJWKS(jwks(t, public))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method jwtlib.SigningMethod
		key    any
		kid    string
		good   bool
	}{
		{jwtlib.SigningMethodRS256, r, "rsa", true}, {jwtlib.SigningMethodRS384, r, "rsa", true}, {jwtlib.SigningMethodRS512, r, "rsa", true},
		{jwtlib.SigningMethodPS256, r, "rsa", false}, {jwtlib.SigningMethodPS384, r, "rsa", false}, {jwtlib.SigningMethodPS512, r, "rsa", false},
		{jwtlib.SigningMethodES256, curves["p256"], "p256", false}, {jwtlib.SigningMethodES384, curves["p384"], "p384", false},
		{jwtlib.SigningMethodES512, curves["p521"], "p521", false}, {jwtlib.SigningMethodEdDSA, ed, "ed", false},
		{jwtlib.SigningMethodNone, jwtlib.UnsafeAllowNoneSignatureType, "rsa", false},
		{jwtlib.SigningMethodHS256, r.PublicKey.N.Bytes(), "rsa", false},
		{jwtlib.SigningMethodES256, curves["p256"], "rsa", false},
		{jwtlib.SigningMethodRS256, r, "", false}, {jwtlib.SigningMethodRS256, r, "else", false},
	} {
		_, err := Verify(sign(t, c.method, c.key, c.kid, claims()), keys, Expectation{}, noon)
		if (err == nil) != c.good {
			t.Errorf("%s with key %q: %v", c.method.Alg(), c.kid, err)
		}
	}
}

// key signs where the key does not matter: to make one takes long.
var key = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func TestVerifyClaims(t *testing.T) {
	keys := Keys{"k": &key().PublicKey}
	with := func(name string, v any) jwtlib.MapClaims {
		c := claims()
		if c[name] = v; v == nil {
			delete(c, name)
		}
		return c
	}
	want := Expectation{Issuer: "me", Audience: "conjur"}
	for _, c := range []struct {
		name   string
		claims jwtlib.MapClaims
		kid    string
		at     time.Duration
		good   bool
		err    error
	}{
		{"good", claims(), "k", 0, true, nil},
		{"expired", claims(), "k", 60 * time.Second, false, ErrExpired},
		{"no expiry", with("exp", nil), "k", 0, false, nil},
		{"expiry is a text", with("exp", "never"), "k", 0, false, nil},
		{"not yet", claims(), "k", -time.Second, false, nil},
		{"issued later", with("iat", noon.Unix()+1), "k", 0, false, nil},
		{"issued now", with("iat", noon.Unix()), "k", 0, true, nil},
		{"issuer", with("iss", "you"), "k", 0, false, nil},
		{"no issuer", with("iss", nil), "k", 0, false, nil},
		{"audience", with("aud", "you"), "k", 0, false, nil},
		{"no audience", with("aud", nil), "k", 0, false, nil},
		{"unknown key", claims(), "other", 0, false, ErrUnknownKey},
	} {
		got, err := Verify(sign(t, jwtlib.SigningMethodRS256, key(), c.kid, c.claims), keys, want, noon.Add(c.at))
		if (err == nil) != c.good || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.name, err)
		}
		if sub, _ := got.Text("sub"); c.good && sub != "s" {
			t.Errorf("%s: subject %q", c.name, sub)
		}
	}
}

// A key without an id is not for tokens without one: which key they mean is
// not to be guessed.
func TestVerifyNeedsAKeyID(t *testing.T) {
	token := sign(t, jwtlib.SigningMethodRS256, key(), "", claims())
	if _, err := Verify(token, Keys{"": &key().PublicKey}, Expectation{}, noon); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("error is %v", err)
	}
}

// Only a text is a value that can be compared, and a slash always goes one level down,
// unless the whole path is one name.
func TestClaimText(t *testing.T) {
	c := Claims{"a": "x", "n": 12.0, "b": true, "list": []any{"x"}, "a/b": "slash", "https://host/x": "url",
		"kubernetes.io": map[string]any{"namespace": "ns", "serviceaccount": map[string]any{"name": "sa"}, "1st": "y"},
		"k8s.io/x":      map[string]any{"y": "deep"}}
	for path, want := range map[string]string{
		"a": "x", "a/b": "slash", "kubernetes.io/namespace": "ns", "kubernetes.io/serviceaccount/name": "sa", "https://host/x": "url",
	} {
		if got, ok := c.Text(path); !ok || got != want {
			t.Errorf("%s is %q, %t", path, got, ok)
		}
	}
	for _, path := range []string{"", "z", "n", "b", "list", "kubernetes.io", "a/", "/a", "kubernetes.io/none", "a/b/c", "k8s.io/x/y", "kubernetes.io/1st", "list/0"} {
		if got, ok := c.Text(path); ok {
			t.Errorf("%s is %q", path, got)
		}
	}
}

func TestParsePublicKeys(t *testing.T) {
	set := jwks(t, map[string]crypto.PublicKey{"k": &key().PublicKey})
	keys, err := ParsePublicKeys([]byte(`{"type":"jwks","value":` + string(set) + `}`))
	if err != nil || len(keys) != 1 {
		t.Errorf("keys %v, %v", keys, err)
	}
	for name, text := range map[string]string{
		"nothing": "", "another type": `{"type":"pem","value":{}}`, "no keys": `{"type":"jwks","value":{"keys":[]}}`,
		"bare set":       string(set),
		"unknown kind":   `{"type":"jwks","value":{"keys":[{"kty":"oct","k":"AAAA","kid":"k"}]}}`,
		"short RSA key":  `{"type":"jwks","value":{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"k"}]}}`,
		"EC key":         `{"type":"jwks","value":{"keys":[{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ","kid":"k"}]}}`,
		"for encryption": `{"type":"jwks","value":{"keys":[{"use":"enc",` + string(set[len(`{"keys":[{`):len(set)-2]) + `]}}`,
	} {
		if keys, err := ParsePublicKeys([]byte(text)); err == nil {
			t.Errorf("%s gives %v", name, keys)
		}
	}
}
