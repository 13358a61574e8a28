package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// template makes or changes a ConfigMap with one template.
func (w *world) template(name, key, text string) {
	w.Helper()
	maps := plane.Core.ConfigMaps(w.namespace)
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{key: text}}
	_, err := maps.Update(w.Context(), m, metav1.UpdateOptions{})
	if err != nil {
		_, err = maps.Create(w.Context(), m, metav1.CreateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
}

func TestEditedConfigMapReachesSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("db/user", "db/password")
	w.template("layout", "url", `db://{{secret "user"}}:{{secret "password"}}@here`)
	w.secret("db", nil, func(s *corev1.Secret) {
		s.Annotations["conjur.org/conjur-secrets.url"] = "- user: db/user\n- password: db/password\n"
		s.Annotations["conjur.org/secret-file-template-configmap.url"] = "layout/url"
	})
	p := w.start()
	url := func(host string) string {
		return fmt.Sprintf("db://%s:%s@%s", w.Value["db/user"], w.Value["db/password"], host)
	}
	w.awaitData("db", map[string]string{"url": url("here")})
	w.template("layout", "url", `db://{{secret "user"}}:{{secret "password"}}@there`)
	w.awaitData("db", map[string]string{"url": url("there")})

	w.template("layout", "url", `{{.Nonsense`) // keeps the last good result
	eventually(t, "an Event about the template", func() bool { return len(w.events("db", "SyncFailed")) > 0 })
	w.awaitData("db", map[string]string{"url": url("there")})
	w.template("layout", "url", `db://{{secret "user"}}:{{secret "password"}}@last`)
	w.awaitData("db", map[string]string{"url": url("last")})
	p.Stop()
}

func TestEditedConfigMapReachesFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("db/user")
	w.template("layout", "greeting.tpl", `hello {{secret "user"}}`)
	for _, folder := range []string{"secrets", "status"} {
		if err := os.Mkdir(filepath.Join(w.dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	annotations := fmt.Sprintf("conjur.org/container-mode=%q\nconjur.org/secrets-destination=%q\nconjur.org/secrets-refresh-interval=%q\n"+
		"conjur.org/conjur-secrets.greeting=%q\nconjur.org/secret-file-format.greeting=%q\nconjur.org/secret-file-template-configmap.greeting=%q\n",
		"sidecar", "file", "1s", "- user: db/user\n", "template", "layout")
	if err := os.WriteFile(filepath.Join(w.dir, "annotations"), []byte(annotations), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"CONTAINER_MODE", "SECRETS_DESTINATION", "NAMESPACE_ALLOWLIST"} {
		delete(w.Env, name)
	}
	w.settings = nil
	p := w.start("--secrets-dir", filepath.Join(w.dir, "secrets"))
	file := func() string {
		text, err := os.ReadFile(filepath.Join(w.dir, "secrets", "greeting.out"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(text)
	}
	eventually(t, "the file", func() bool { return file() == "hello "+w.Value["db/user"] })
	w.template("layout", "greeting.tpl", `good bye {{secret "user"}}`)
	eventually(t, "the edit", func() bool { return file() == "good bye "+w.Value["db/user"] })
	p.Stop()
}

// TestWatchesThatBeginWithAList: an API server that cannot stream the initial list is used
// with a list and a watch.
func TestWatchesThatBeginWithAList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Env["KUBE_FEATURE_WatchListClient"] = "false"
	w.Variables("db/user")
	w.template("layout", "greeting.tpl", `hello {{secret "user"}}`)
	w.secret("db", nil, func(s *corev1.Secret) {
		s.Annotations["conjur.org/conjur-secrets.greeting"] = "- user: db/user\n"
		s.Annotations["conjur.org/secret-file-template-configmap.greeting"] = "layout"
	})
	p := w.start()
	w.awaitData("db", map[string]string{"greeting": "hello " + w.Value["db/user"]})
	w.template("layout", "greeting.tpl", `good bye {{secret "user"}}`)
	w.awaitData("db", map[string]string{"greeting": "good bye " + w.Value["db/user"]})
	p.Stop()
}
