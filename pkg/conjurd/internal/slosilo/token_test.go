package slosilo

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
)

var (
	noon  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	alice = Claims{IssuedAt: noon.Unix(), Subject: "alice", ExpiresAt: noon.Unix() + 480}
)

func newKey(t testing.TB) *Key {
	t.Helper()
	k, err := NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sign(t testing.TB, k *Key, c Claims) *Token {
	t.Helper()
	token, err := k.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func encode(t testing.TB, token *Token) string {
	t.Helper()
	b, err := json.Marshal(token)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b)
}

func TestTokenTravels(t *testing.T) {
	k := newKey(t)
	token, err := Parse(" " + encode(t, sign(t, k, alice)) + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if id, err := token.KeyID(); err != nil || id != k.ID() || len(id) != 64 {
		t.Errorf("key id %q, %v", id, err)
	}
	claims, err := k.Verify(token, noon)
	if err != nil || claims.Subject != "alice" || claims.ExpiresAt-claims.IssuedAt != 480 {
		t.Errorf("claims %+v, %v", claims, err)
	}
	again, err := ParseKey(k.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Verify(token, noon); err != nil {
		t.Errorf("the key that was kept: %v", err)
	}
}

func TestVerifyRefusesAnyChange(t *testing.T) {
	k := newKey(t)
	for _, c := range []struct {
		name   string
		change func(*Token)
	}{
		{"payload", func(x *Token) { x.Payload = base64.URLEncoding.EncodeToString([]byte(`{"iat":1,"sub":"admin"}`)) }},
		{"header", func(x *Token) { x.Protected = base64.URLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) }},
		{"signature", func(x *Token) { x.Signature = "A" + x.Signature[1:] + "" }},
		{"salt", func(x *Token) { x.Signature = x.Signature[:len(x.Signature)-8] + "AAAAAAA=" }},
		{"no signature", func(x *Token) { x.Signature = "" }},
		{"signature cut", func(x *Token) { x.Signature = x.Signature[:100] }},
		{"not base64", func(x *Token) { x.Signature = "!" }},
	} {
		token := sign(t, k, alice)
		for strings.HasPrefix(token.Signature, "A") { // which the change would not change
			token = sign(t, k, alice)
		}
		if _, err := k.Verify(token, noon); err != nil {
			t.Fatal(err)
		}
		c.change(token)
		if _, err := k.Verify(token, noon); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := newKey(t).Verify(sign(t, k, alice), noon); !errors.Is(err, ErrInvalid) {
		t.Errorf("another key: %v", err)
	}
}

func TestTimes(t *testing.T) {
	k := newKey(t)
	noExp := Claims{IssuedAt: noon.Unix(), Subject: "alice"}
	for _, c := range []struct {
		name   string
		claims Claims
		at     time.Duration // after noon
		good   bool
	}{
		{"fresh", alice, 0, true},
		{"last moment", alice, 480*time.Second - 1, true},
		{"expired", alice, 480 * time.Second, false},
		{"from the future", alice, -time.Hour, true},
		{"no expiry, fresh", noExp, 8*time.Minute - 1, true},
		{"no expiry, old", noExp, 8 * time.Minute, false},
	} {
		token := sign(t, k, c.claims)
		if _, err := k.Verify(token, noon.Add(c.at)); (err == nil) != c.good {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestClaims(t *testing.T) {
	k := newKey(t)
	for _, c := range []struct {
		payload string
		want    error
	}{
		{`{"iat":1767268800,"sub":"alice","role":"admin"}`, ErrClaims},
		{`{"iat":"x","sub":"alice"}`, ErrClaims},
		{`not JSON`, ErrClaims},
		{`{"iat":1767268800}`, ErrInvalid},
	} {
		if _, err := k.Verify(signRaw(t, k, c.payload), noon); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.payload, err)
		}
	}
}

// signRaw signs any payload.
func signRaw(t *testing.T, k *Key, payload string) *Token {
	t.Helper()
	token := sign(t, k, alice)
	token.Payload = base64.URLEncoding.EncodeToString([]byte(payload))
	if err := k.sign(token); err != nil {
		t.Fatal(err)
	}
	return token
}

func TestAllowsFrom(t *testing.T) {
	for _, c := range []struct {
		networks []string
		addr     string
		want     bool
	}{
		{nil, "8.8.8.8", true},
		{[]string{"10.0.0.0/8"}, "10.9.9.9", true},
		{[]string{"10.0.0.0/8"}, "::ffff:10.9.9.9", true},
		{[]string{"10.0.0.0/8"}, "11.0.0.1", false},
		{[]string{"1.2.3.4", "fd00::/8"}, "fd12::1", true},
		{[]string{"1.2.3.4"}, "1.2.3.4", true},
		{[]string{"nonsense"}, "1.2.3.4", false},
	} {
		if got := (Claims{CIDR: c.networks}).AllowsFrom(netip.MustParseAddr(c.addr)); got != c.want {
			t.Errorf("from %s with %v: %t", c.addr, c.networks, got)
		}
	}
}

// FuzzParse looks for texts that break the reading of a token, or that pass
// for one without the key.
func FuzzParse(f *testing.F) {
	k := newKey(f)
	f.Add(encode(f, sign(f, newKey(f), alice)))
	f.Add("aGVsbG8=")
	f.Add(base64.StdEncoding.EncodeToString([]byte(`{"protected":"e30=","payload":"e30=","signature":""}`)))
	f.Add(base64.StdEncoding.EncodeToString([]byte(`{"protected":1}`)))
	f.Fuzz(func(t *testing.T, text string) {
		token, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("error %v", err)
			}
			return
		}
		_, _ = token.KeyID()
		if c, err := k.Verify(token, noon); err == nil {
			t.Errorf("accepted for %q", c.Subject)
		}
	})
}
