package kubesecrets_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets"
)

// keyPair makes a certificate and its key, both PEM.
func keyPair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

// refuse applies what must be refused, for the reason given, and checks that
// nothing was sent and no value is told.
func (k *kube) refuse(t *testing.T, target *targets.Target, c sinks.Changes, reason string) {
	t.Helper()
	calls := k.wire.since(func() {
		err := k.sink.Apply(t.Context(), target, c)
		if got := refusal(t, err); !strings.Contains(got, reason) {
			t.Errorf("the reason is %q, want %q in it", got, reason)
		}
		if !strings.HasPrefix(err.Error(), string(target.Key)+": ") || strings.Contains(err.Error(), "canary") {
			t.Errorf("the error is %q", err)
		}
	})
	if !slices.Equal(calls, []string{"GET"}) {
		t.Errorf("the calls are %q", calls)
	}
}

func TestSize(t *testing.T) {
	k := newKube(t)
	k.make(t, "s", "", "foreign", strings.Repeat("f", 1000), targets.ConjurMapKey, strings.Repeat("m", 24), "a", "old")
	target := k.target("s", "a", "b")
	most := 1<<20 - 1024
	k.refuse(t, target, setAll("a", strings.Repeat("x", most), "b", "y"), "1048577 bytes")
	k.expectData(t, "s", map[string]string{"foreign": strings.Repeat("f", 1000), targets.ConjurMapKey: strings.Repeat("m", 24), "a": "old"})
	must(t, k.sink.Apply(t.Context(), target, setAll("a", strings.Repeat("x", most-1), "b", "y")))
	// Bytes that go make room.
	c := setAll("b", strings.Repeat("y", most))
	c.Remove = []string{"a"}
	must(t, k.sink.Apply(t.Context(), target, c))
}

func TestDataKeys(t *testing.T) {
	k := newKube(t)
	k.make(t, "s", "")
	for key, reason := range map[string]string{
		"":                       "not allowed",
		"a b":                    "not allowed",
		"ä":                      "not allowed",
		"..":                     "not allowed",
		`x","y`:                  "not allowed",
		strings.Repeat("k", 254): "not allowed",
		targets.ConjurMapKey:     "map itself",
	} {
		k.refuse(t, k.target("s"), setAll(key, "canary"), reason)
	}
	err := k.sink.Apply(t.Context(), k.target("s"), setAll("a b", "canary", "c d", "canary"))
	if reason := refusal(t, err); !strings.Contains(reason, `"a b"`) || !strings.Contains(reason, `"c d"`) {
		t.Errorf("of two keys the error is %q", reason)
	}
	longest := strings.Repeat("k", 253)
	must(t, k.sink.Apply(t.Context(), k.target("s"), setAll(longest, "1", "-._aZ9", "2")))
	k.expectData(t, "s", map[string]string{longest: "1", "-._aZ9": "2"})
}

func TestImmutable(t *testing.T) {
	k := newKube(t)
	k.make(t, "s", "", "a", "1")
	k.merge(t, "s", `{"immutable":true}`)
	target := k.target("s", "a")
	k.refuse(t, target, setAll("a", "canary"), "immutable")
	k.refuse(t, target, sinks.Changes{Remove: []string{"a"}}, "immutable")
	k.sync(t, target, map[string]string{"a": "1"}) // taken over, which changes no data
	if state := k.read(t, target); state.Stale {
		t.Error("it is still stale")
	}
}

func TestTypesNeverWritten(t *testing.T) {
	k := newKube(t)
	k.make(t, "helm", "helm.sh/release.v1", "release", "old")
	k.make(t, "boot", corev1.SecretTypeBootstrapToken, "token-id", "abcdef")
	token := &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken}
	token.Name, token.Annotations = "token", map[string]string{corev1.ServiceAccountNameKey: "default"}
	for _, name := range []string{"helm", "boot"} {
		k.refuse(t, k.target(name, "release"), setAll("release", "canary"), "never written")
		k.refuse(t, k.target(name, "release", "token-id"), sinks.Changes{Parts: parts(), Remove: []string{"release", "token-id"}}, "never written")
	}
	for _, kind := range []corev1.SecretType{corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken, "helm.sh/release.v1"} {
		k.refuse(t, k.created("new", kind, "a"), setAll("a", "canary"), "never written")
	}
	k.refuse(t, k.created("new", "example.org/own", "a"), setAll("a", "canary"), "not created")
}

// A type of another's own is written, but not chosen.
func TestTypeOfOthers(t *testing.T) {
	k := newKube(t)
	k.make(t, "s", "example.org/own", "f", "1")
	k.sync(t, k.target("s", "a"), map[string]string{"a": "1"})
	k.expectData(t, "s", map[string]string{"f": "1", "a": "1"})
	k.refuse(t, k.created("s", "Opaque", "a"), setAll("a", "canary"), "example.org/own and should be of type Opaque")
	k.sync(t, k.created("s", "", "a"), map[string]string{"a": "2"})
	k.sync(t, k.created("s", "example.org/own", "a"), map[string]string{"a": "3"})
}

// content is what a type takes and what it does not.
type content struct {
	kind      corev1.SecretType
	good, bad []map[string]string
	// revoked is what is left of good[0] when it is revoked.
	revoked map[string]string
}

func contents(t *testing.T) []content {
	certificate, key := keyPair(t)
	_, other := keyPair(t)
	tls := func(certificate, key string) map[string]string {
		return map[string]string{"tls.crt": certificate, "tls.key": key}
	}
	one := func(key string, values ...string) (all []map[string]string) {
		for _, value := range values {
			all = append(all, map[string]string{key: value})
		}
		return all
	}
	return []content{
		{
			corev1.SecretTypeTLS,
			[]map[string]string{tls(certificate, key), tls("text before\n"+certificate+certificate, key), tls(other+certificate, key)},
			[]map[string]string{
				tls(certificate, other), tls(key, certificate), tls("canary", key), tls(certificate, "canary"), tls(certificate, ""), tls("", ""),
				{"tls.crt": certificate}, {"ca.crt": "canary"}, tls("-----BEGIN CERTIFICATE-----\nY2FuYXJ5\n-----END CERTIFICATE-----\n", key),
			},
			map[string]string{"tls.crt": "", "tls.key": ""},
		},
		{
			corev1.SecretTypeDockerConfigJson,
			one(".dockerconfigjson", `{"auths":{"r.example":{"auth":"eA=="}}}`, `{"auths":{},"more":1}`),
			append(one(".dockerconfigjson", "canary", `"canary"`, "{}", `{"auths":"canary"}`, `{"auths":{}} canary`, `{"auths":null}`, `{"auths":{"r":"canary"}}`, ""), map[string]string{"a": "canary"}),
			map[string]string{".dockerconfigjson": "{}"},
		},
		{
			corev1.SecretTypeDockercfg,
			one(".dockercfg", `{"r.example":{"auth":"eA=="}}`),
			one(".dockercfg", "canary", "{}", "null", `["canary"]`, `{"r":1}`),
			map[string]string{".dockercfg": "{}"},
		},
		{
			corev1.SecretTypeBasicAuth,
			[]map[string]string{{"username": "u", "password": "p"}, {"password": "p"}, {"username": "u"}, {"username": "", "password": "p"}},
			[]map[string]string{{"user": "canary"}, {"username": "", "password": ""}},
			map[string]string{"username": "", "password": ""},
		},
		{
			corev1.SecretTypeSSHAuth,
			one("ssh-privatekey", "k"),
			append(one("ssh-privatekey", "", "\n"), map[string]string{"key": "canary"}),
			map[string]string{"ssh-privatekey": "\n"},
		},
	}
}

func pairs(values map[string]string) (list []string) {
	for key, value := range values {
		list = append(list, key, value)
	}
	return list
}

// Content that does not fit the Secret's type is refused, for one that is
// created and for one that is there; what fits is taken by the API server.
func TestContentOfType(t *testing.T) {
	for _, c := range contents(t) {
		t.Run(string(c.kind), func(t *testing.T) {
			k := newKube(t)
			keys := []string{"tls.crt", "tls.key", ".dockerconfigjson", ".dockercfg", "username", "password", "ssh-privatekey"}
			target := k.created("s", c.kind, keys...)
			for _, bad := range c.bad {
				k.refuse(t, target, setAll(pairs(bad)...), "")
			}
			for _, good := range c.good {
				k.sync(t, target, good)
				k.expectData(t, "s", good)
				if change := k.sync(t, target, good); !change.Empty() {
					t.Errorf("the second time %q is set and %q removed", change.Set, change.Remove)
				}
			}
			k.sync(t, target, c.good[0])
			for _, bad := range c.bad {
				if slices.Equal(keysOf(bad), keysOf(c.good[0])) {
					k.refuse(t, target, setAll(pairs(bad)...), "")
				}
			}
			k.expectData(t, "s", c.good[0])
		})
	}
}

func keysOf(values map[string]string) (keys []string) {
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Where the type demands a key, a revoked value goes and the key stays; that
// is then nothing, until the value comes back.
func TestRevokedKeysOfType(t *testing.T) {
	for _, c := range contents(t) {
		t.Run(string(c.kind), func(t *testing.T) {
			k := newKube(t)
			target := k.created("s", c.kind, keysOf(c.good[0])...)
			k.sync(t, target, c.good[0])
			for range 2 {
				k.sync(t, target, nil)
				k.expectData(t, "s", c.revoked)
				before := k.get(t, "s").ResourceVersion
				if state := k.read(t, target); state.Parts != nil || state.Stale {
					t.Errorf("there is %v", state)
				}
				k.sync(t, target, nil)
				if k.get(t, "s").ResourceVersion != before {
					t.Error("it was written again")
				}
				k.sync(t, target, c.good[0])
				k.expectData(t, "s", c.good[0])
			}
		})
	}
}

// One of two demanded keys is revoked, and the other goes on.
func TestHalfRevoked(t *testing.T) {
	k := newKube(t)
	certificate, key := keyPair(t)
	target := k.created("s", corev1.SecretTypeTLS, "tls.crt", "tls.key")
	k.sync(t, target, map[string]string{"tls.crt": certificate, "tls.key": key})
	for _, rotated := range []string{key, "other"} {
		k.sync(t, target, map[string]string{"tls.key": rotated})
		k.expectData(t, "s", map[string]string{"tls.crt": "", "tls.key": rotated})
	}
	k.sync(t, target, map[string]string{"tls.crt": certificate, "tls.key": key})

	auth := k.created("auth", corev1.SecretTypeBasicAuth, "username", "password")
	k.sync(t, auth, map[string]string{"username": "u", "password": "p"})
	k.sync(t, auth, map[string]string{"username": "u"})
	k.expectData(t, "auth", map[string]string{"username": "u"})
	k.sync(t, auth, nil)
	k.expectData(t, "auth", map[string]string{"username": ""})
}

// What others have in a Secret need not fit its type for other keys to be
// written; a pair that is half ours must.
func TestForeignContentOfType(t *testing.T) {
	k := newKube(t)
	certificate, key := keyPair(t)
	k.make(t, "s", corev1.SecretTypeTLS, "tls.crt", "none", "tls.key", "none")
	k.sync(t, k.target("s", "ca.crt"), map[string]string{"ca.crt": certificate})
	k.refuse(t, k.target("s", "tls.crt"), setAll("tls.crt", certificate), "belongs to the certificate")
	k.merge(t, "s", `{"data":{"tls.key":"`+encode(key)+`"}}`)
	k.sync(t, k.target("s", "tls.crt", "ca.crt"), map[string]string{"tls.crt": certificate, "ca.crt": certificate})
	k.expectData(t, "s", map[string]string{"tls.crt": certificate, "tls.key": key, "ca.crt": certificate})

	k.make(t, "empty", corev1.SecretTypeTLS, "tls.crt", "", "tls.key", "")
	k.refuse(t, k.target("empty", "tls.crt"), setAll("tls.crt", certificate), `needs a value under "tls.key"`)
	k.sync(t, k.target("empty", "tls.crt", "tls.key"), map[string]string{"tls.crt": certificate, "tls.key": key})
	k.expectData(t, "empty", map[string]string{"tls.crt": certificate, "tls.key": key})
}
