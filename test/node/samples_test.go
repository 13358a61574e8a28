//go:build node

package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/test/deploy"
)

// samples are manifests made for the Secrets Provider, in which nothing but the
// image is changed; and what they deliver: files of the application, keys of
// the Secret db-credentials.
var samples = map[string]struct{ files, keys map[string]string }{
	"init-files-jwt": {files: map[string]string{
		"/opt/shop/secrets/db.yaml":         "\"username\": \"anna\"\n\"password\": \"first\"",
		"/opt/shop/secrets/config/app.conf": "address = db.example\n",
	}},
	"init-files-k8s":       {files: map[string]string{"/opt/shop/secrets/db.env": "username=\"anna\"\npassword=\"first\""}},
	"init-secrets-jwt":     {keys: map[string]string{"username": "anna", "password": "first"}},
	"init-secrets-k8s":     {keys: map[string]string{"username": "anna", "password": "first"}},
	"rotation-files-jwt":   {files: map[string]string{"/opt/shop/secrets/db.json": `{"username":"anna","password":"first"}`}},
	"rotation-files-k8s":   {files: map[string]string{"/opt/shop/secrets/db.bash": "export url=\"db.example\"\nexport username=\"anna\"\nexport password=\"first\""}},
	"rotation-secrets-jwt": {keys: map[string]string{"username": "anna", "password": "first", "app.conf": "address = db.example\n"}},
	"rotation-secrets-k8s": {keys: map[string]string{"username": "anna", "password": "first"}},
	"job":                  {keys: map[string]string{"username": "anna", "password": "first"}},
	"standalone":           {keys: map[string]string{"username": "anna", "password": "first"}},
}

// TestManifestsOfTheSecretsProvider with only the image changed.
func TestManifestsOfTheSecretsProvider(t *testing.T) {
	t.Parallel()
	for sample, want := range samples {
		t.Run(sample, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			w.deploySample(sample)
			if want.keys != nil {
				w.awaitSecret("db-credentials", want.keys)
			}
			if sample == "job" {
				return
			}
			p := w.podOf("app=shop")
			p.ready()
			for path, text := range want.files {
				p.awaitFile(path, text)
			}
			if !strings.HasPrefix(sample, "rotation") && sample != "standalone" {
				return
			}
			w.set(map[string]string{"shop/db/password": "second"})
			for path, text := range want.files {
				p.awaitFile(path, strings.ReplaceAll(text, "first", "second"))
			}
			if want.keys != nil {
				want.keys["password"] = "second"
				w.awaitSecret("db-credentials", want.keys)
			}
		})
	}
}

// sampleWorld is a world with the policy of the samples.
func sampleWorld(t *testing.T) *world {
	t.Helper()
	ca, err := conjurd.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	policy, err := os.ReadFile("../samples/testdata/policy.yml")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorldWith(t, string(policy), map[string]string{
		"shop/db/url": "db.example", "shop/db/username": "anna", "shop/db/password": "first", "shop/tls/key": "a2V5",
		"conjur/authn-k8s/prod/ca/cert": string(ca.Cert), "conjur/authn-k8s/prod/ca/key": string(ca.Key),
	})
	w.mayLookAtPods()
	return w
}

// deploySample creates a manifest's objects.
func (w *world) deploySample(sample string) {
	w.t.Helper()
	authn := "/authn-jwt/cluster"
	if strings.HasSuffix(sample, "-k8s") {
		authn = "/authn-k8s/prod"
	}
	connection := map[string]string{
		"CONJUR_ACCOUNT": account, "CONJUR_APPLIANCE_URL": w.address,
		"CONJUR_AUTHN_URL": w.address + authn, "CONJUR_SSL_CERTIFICATE": w.ca,
	}
	w.configMap("conjur-connect", connection)
	text, err := os.ReadFile(filepath.Join("../samples/testdata", sample+".yaml"))
	w.check(err)
	pairs := []string{
		"VALUE_OF_NAMESPACE", w.namespace, "SERVER_ADDRESS", ":8080", "SERVER_PORT", "8080",
		"cyberark/secrets-provider-for-k8s:latest", syncerImage, "example/app:1", shellImage,
	}
	for name, value := range connection {
		pairs = append(pairs, "VALUE_OF_"+name, `"`+strings.ReplaceAll(value, "\n", `\n`)+`"`)
	}
	cluster := deploy.Connect(w.t, plane.Config())
	for _, o := range deploy.Decode(w.t, []byte(strings.NewReplacer(pairs...).Replace(string(text)))) {
		_, err := cluster.Create(w.t.Context(), w.namespace, o, false)
		w.check(err)
	}
}
