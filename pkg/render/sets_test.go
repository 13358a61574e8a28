package render_test

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/pkg/render"
	"github.com/secretsync/syncer/pkg/rotation/generate"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/targets"
)

// rotated is a set with two versions, first without and then with the second as
// primary.
func rotated(t *testing.T, c generate.Config) (before, after *versions.Document) {
	t.Helper()
	by := versions.Entry{At: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	set := versions.New("")
	for range 2 {
		parts, err := c.Parts(time.Now(), nil)
		if err != nil {
			t.Fatal(err)
		}
		id := set.NewID(by.At)
		set = set.Make(id, parts, false, by)
		if _, ok := set.Primary(); !ok {
			set = set.Promote(id, by)
		}
	}
	coming, _ := set.Coming()
	return set, set.Promote(coming.ID, by)
}

func renderSet(t *testing.T, format targets.Format, alias, template string, set *versions.Document) (string, error) {
	t.Helper()
	value, err := set.Encode()
	if err != nil {
		t.Fatal(err)
	}
	target := &targets.Target{Group: "g", Format: format, Entries: []targets.Entry{{Alias: alias, Variable: "p/set", ContentType: targets.ContentKeys}}}
	if err := render.Check(target, template); err != nil {
		t.Errorf("the check says %v", err)
	}
	result, err := render.Render(target, template, []render.Item{{Alias: alias, Value: secret.New(value)}})
	return string(result.Parts[""].Bytes()), err
}

// TestJWKS signs with the keys before a change and verifies with those after it.
func TestJWKS(t *testing.T) {
	for name, c := range map[string]struct {
		generate.Config
		alg jose.SignatureAlgorithm
	}{
		"oct": {generate.Config{Random: 64}, jose.HS256}, "rsa": {generate.Config{RSA: 2048}, jose.RS256},
		"ecdsa": {generate.Config{ECDSA: "P-521"}, jose.ES512}, "ed25519": {generate.Config{Ed25519: true}, jose.EdDSA},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := rotated(t, c.Config)
			read := func(format targets.Format, set *versions.Document) (keys jose.JSONWebKeySet) {
				text, err := renderSet(t, format, "keys", "", set)
				if err == nil {
					err = json.Unmarshal([]byte(text), &keys)
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, key := range keys.Keys {
					if name != "oct" && !key.Valid() || key.IsPublic() != (format == targets.FormatJWKSPublic) {
						t.Errorf("%s has a key %s that is valid: %v, public: %v", format, key.KeyID, key.Valid(), key.IsPublic())
					}
				}
				return keys
			}
			signing := read(targets.FormatJWKS, after)
			primary, _ := after.Primary()
			if len(signing.Keys) != 2 || signing.Keys[0].KeyID != primary.ID {
				t.Fatalf("the first of %d keys is not the primary", len(signing.Keys))
			}
			signer, err := jose.NewSigner(jose.SigningKey{Algorithm: c.alg, Key: signing.Keys[0]}, nil)
			if err != nil {
				t.Fatal(err)
			}
			token, err := signer.Sign([]byte("claims"))
			if err != nil {
				t.Fatal(err)
			}
			if name == "oct" {
				if _, err := renderSet(t, targets.FormatJWKSPublic, "keys", "", before); err == nil || !strings.Contains(err.Error(), "symmetric") {
					t.Errorf("the public set of symmetric keys: %v", err)
				}
				return
			}
			public := read(targets.FormatJWKSPublic, before)
			key := public.Key(primary.ID)
			if len(key) != 1 {
				t.Fatalf("%d keys have the id", len(key))
			}
			if _, err := token.Verify(key[0]); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestJWKSOfPartsThatAreNoKeys names the part, and not its content.
func TestJWKSOfPartsThatAreNoKeys(t *testing.T) {
	made := func(kind string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte("geheim")}))
	}
	for _, c := range []struct {
		format     targets.Format
		part, text string
		want       string
	}{
		{targets.FormatJWKS, "private", "geheim", `its part "private" is not in PEM`},
		{targets.FormatJWKS, "private", made("PRIVATE KEY"), `its part "private" must be`},
		{targets.FormatJWKSPublic, "public", made("PUBLIC KEY"), `its part "public" must be`},
		{targets.FormatJWKSPublic, "crt", made("CERTIFICATE"), `its part "crt" must be`},
		{targets.FormatJWKS, "crt", made("CERTIFICATE"), "it has no part key or private"},
	} {
		by := versions.Entry{At: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
		set := versions.New("")
		id := set.NewID(by.At)
		set = set.Make(id, map[string]secret.Value{c.part: secret.New([]byte(c.text))}, false, by).Promote(id, by)
		text, err := renderSet(t, c.format, "keys", "", set)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s of %s: %q, %v; want %q", c.format, c.part, text, err, c.want)
		}
	}
}

func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTinkExample encrypts with the set before a promotion and decrypts with the
// one after it, and the other way round.
func TestTinkExample(t *testing.T) {
	before, after := rotated(t, generate.Config{Random: 32})
	var sealed [][]byte
	for i, set := range []*versions.Document{before, after, before} {
		text, err := renderSet(t, targets.FormatTemplate, "keys", example(t, "tink-keyset.json.tpl"), set)
		if err != nil {
			t.Fatal(err)
		}
		handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		cipher, err := aead.New(handle)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range sealed {
			if plain, err := cipher.Decrypt(text, nil); err != nil || string(plain) != "a secret" {
				t.Errorf("revision %d: %v", i, err)
			}
		}
		text2, err := cipher.Encrypt([]byte("a secret"), nil)
		if err != nil {
			t.Fatal(err)
		}
		sealed = append(sealed, text2)
	}
}

func TestTrustBundleExample(t *testing.T) {
	before, _ := rotated(t, generate.Config{X509: &generate.X509{Subject: "an authority", Authority: true}})
	text, err := renderSet(t, targets.FormatTemplate, "ca", example(t, "trust-bundle.pem.tpl"), before)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(text))
	for _, v := range before.Usable() {
		one := x509.NewCertPool()
		one.AppendCertsFromPEM(v.Parts["crt"].Bytes())
		pool2 := pool.Clone()
		pool2.AppendCertsFromPEM(v.Parts["crt"].Bytes())
		if !pool2.Equal(pool) || one.Equal(pool) {
			t.Errorf("%s is not among the trusted", v.ID)
		}
	}
}

func TestEncryptionConfigurationExample(t *testing.T) {
	_, after := rotated(t, generate.Config{Random: 32})
	text, err := renderSet(t, targets.FormatTemplate, "keys", example(t, "encryption-configuration.yaml.tpl"), after)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Resources []struct {
			Providers []struct {
				Secretbox *struct {
					Keys []struct{ Name, Secret string }
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	keys := config.Resources[0].Providers[0].Secretbox.Keys
	primary, _ := after.Primary()
	if len(keys) != 2 || keys[0].Name != primary.ID {
		t.Fatalf("it has %d keys", len(keys))
	}
	for _, key := range keys {
		v, _ := after.Version(key.Name)
		if secret, err := base64.StdEncoding.DecodeString(key.Secret); err != nil || !bytes.Equal(secret, v.Parts["key"].Bytes()) {
			t.Errorf("the key %s is another one", key.Name)
		}
	}
}

func TestSetsInATemplate(t *testing.T) {
	set, _ := rotated(t, generate.Config{UUID: true})
	for text, says := range map[string]string{
		`{{range versions "other"}}{{end}}`:             "the group has no set of that alias",
		`{{secret "keys"}}`:                             `the group has no alias "keys"`,
		`{{range versions "keys"}}{{.Part "x"}}{{end}}`: "the version has no such part",
	} {
		value, err := set.Encode()
		if err != nil {
			t.Fatal(err)
		}
		target := &targets.Target{Group: "g", Format: targets.FormatTemplate, Entries: []targets.Entry{{Alias: "keys", Variable: "p", ContentType: targets.ContentKeys}}}
		if _, err := render.Render(target, text, []render.Item{{Alias: "keys", Value: secret.New(value)}}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSetsSuitFewFormats(t *testing.T) {
	for _, format := range targets.Formats() {
		target := &targets.Target{Group: "g", Format: format, Entries: []targets.Entry{{Alias: "*", Variable: "p", ContentType: targets.ContentKeys}}}
		suits := format == targets.FormatDirectory || format == targets.FormatTemplate || strings.HasPrefix(string(format), "jwks")
		if err := render.Check(target, "text"); (err == nil) != suits {
			t.Errorf("%s: %v", format, err)
		}
	}
	plain := &targets.Target{Group: "g", Format: targets.FormatJWKS, Entries: []targets.Entry{{Alias: "a", Variable: "p"}}}
	if err := render.Check(plain, ""); err == nil || !strings.Contains(err.Error(), "it holds sets only") {
		t.Errorf("a plain entry in a JWKS: %v", err)
	}
}
