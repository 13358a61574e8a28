//go:build node

package node

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/deploy"
)

// edit copies a folder to another, and replaces texts in some of its files: to
// each file the pairs of old and new.
func (w *world) edit(from, to string, files map[string][]string) {
	w.t.Helper()
	w.check(os.CopyFS(to, os.DirFS(from)))
	for name, pairs := range files {
		path := filepath.Join(to, name)
		text, err := os.ReadFile(path)
		w.check(err)
		w.check(os.WriteFile(path, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o600))
	}
}

// TestChartThatIncludesTheSidecar: one of an application, which depends on
// Syncer's with the shape none.
func TestChartThatIncludesTheSidecar(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	w.restricted()
	dir := t.TempDir()
	w.edit("../deploy/testdata/app", dir, map[string][]string{"templates/deployment.yaml": {
		"apps/shop/db-user", "shop/user", "apps/shop/db-password", "shop/password", "refresh-interval: 1m", "refresh-interval: 1s",
		"image: app", "image: " + appImage, "serviceAccountName: default", "serviceAccountName: app",
		"runAsNonRoot: true", "runAsNonRoot: true\n        runAsUser: 10001",
	}})
	w.edit("../../deploy/chart/syncer", filepath.Join(dir, "charts", "syncer"), nil)
	w.configMap("conjur-ca", map[string]string{"ca.crt": w.ca})
	conjur := map[string]any{"applianceUrl": w.address, "account": account, "authnUrl": w.address + "/authn-jwt/cluster"}
	values := w.yaml(map[string]any{"syncer": map[string]any{"config": map[string]any{"conjur": conjur}}})
	deploy.Connect(t, plane.Config()).Install(t, deploy.Release{Name: "shop", Namespace: w.namespace, Chart: dir, Values: values})
	p := w.podOf("app=shop")
	p.ready()
	for _, password := range []string{"first", "second"} {
		w.set(map[string]string{"shop/password": password})
		p.awaitFile(secretsDir+"db.yaml", "\"user\": \"anna\"\n\"password\": "+strconv.Quote(password))
	}
}

// TestKustomize as the documentation has it: the overlay, copied and edited, and
// the base, in a namespace of another name.
func TestKustomize(t *testing.T) {
	t.Parallel()
	t.Run("overlay", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, shop())
		dir := t.TempDir()
		w.edit("../../deploy/kustomize", dir, map[string][]string{
			"overlays/example/kustomization.yaml": {"namespace: platform", "namespace: " + w.namespace, "  - namespace.yaml\n", ""},
			"overlays/example/config.yaml": {
				"https://conjur.example.net/authn-jwt/platform", w.address + "/authn-jwt/cluster", "https://conjur.example.net", w.address,
				"[platform]", "[" + w.namespace + "]", "account: platform", "account: " + account + "\n      sslCertificate: " + strconv.Quote(w.ca), "5m", "1s",
			},
		})
		text, err := deploy.Kustomize(filepath.Join(dir, "overlays", "example"))
		w.check(err)
		w.delivers(text)
	})
	t.Run("base", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, shop())
		text, err := os.ReadFile("../../deploy/kustomize/base/syncer.yaml")
		w.check(err)
		w.delivers([]byte(strings.NewReplacer(
			"namespace: syncer", "namespace: "+w.namespace, "      - syncer\n", "      - "+w.namespace+"\n", "serviceaccount:syncer:", "serviceaccount:"+w.namespace+":",
			"syncer.syncer", w.namespace+".syncer", // of the whole cluster, where the overlay has its own
			"https://conjur.example.com/authn-jwt/example", w.address+"/authn-jwt/cluster", "https://conjur.example.com", w.address,
			"account: example", "account: "+account+"\n      sslCertificate: "+strconv.Quote(w.ca), "enabled: true", "interval: 1s",
		).Replace(string(text))))
	})
}

// delivers applies manifests with Syncer's Deployment, and has it fill a Secret.
func (w *world) delivers(manifests []byte) {
	w.t.Helper()
	w.restricted()
	cluster := deploy.Connect(w.t, plane.Config())
	for _, o := range deploy.Decode(w.t, manifests) {
		_, err := cluster.Create(w.t.Context(), w.namespace, o, false)
		w.check(err)
	}
	w.managed("db", "user: shop/user\npassword: shop/password\n", nil)
	w.awaitSecret("db", map[string]string{"user": "anna", "password": "first"})
	w.set(map[string]string{"shop/password": "second"})
	w.awaitSecret("db", map[string]string{"user": "anna", "password": "second"})
	w.eventually("both replicas ready", func() bool {
		d, err := client.AppsV1().Deployments(w.namespace).Get(w.t.Context(), "syncer", metav1.GetOptions{})
		w.check(err)
		return d.Status.ReadyReplicas == 2
	})
}
