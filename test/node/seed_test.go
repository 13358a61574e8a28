//go:build node

package node

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// startedWith checks what the application saw of a file at its start.
func (p *pod) startedWith(path, text string) {
	p.t.Helper()
	p.awaitLog("app", "started\n")
	if log := p.log("app"); !strings.HasPrefix(log, "start: "+path+": "+strconv.Quote(text)+"\n") {
		p.t.Errorf("the application of Pod %s said\n%s", p.name, log)
	}
}

func TestSidecarWithoutRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	p := w.start("shop", w.documented(files(), "run", dbFile))
	p.startedWith(dbFile, db("first"))
	w.set(map[string]string{"shop/password": "second"})
	// Nothing is to happen, which is so when another Pod has got as far.
	later := w.start("later", w.documented(files(), "run", dbFile))
	later.ready()
	later.awaitFile(dbFile, db("second"))
	p.awaitFile(dbFile, db("first"))
	if n := p.restarts("syncer"); n != 0 {
		t.Errorf("Syncer was restarted %d times", n)
	}
}

func TestSidecarWithRotationOfFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	p := w.start("shop", w.documented(files("secrets-refresh-interval", "1s"), "watch", dbFile))
	p.startedWith(dbFile, db("first"))
	for _, password := range []string{"second", "third"} {
		w.set(map[string]string{"shop/password": password})
		p.awaitFile(dbFile, db(password))
	}
	if log := p.log("app"); strings.Contains(log, "torn") {
		t.Errorf("the application said\n%s", log)
	}
}

// TestSidecarWithRotationOfASecret that the application has as a volume.
func TestSidecarWithRotationOfASecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	w.secret("db", "user: shop/user\npassword: shop/password\n")
	plane.Bind(t, w.namespace, "app", secretRules("db")...)
	spec := w.documented(map[string]string{
		"conjur.org/secrets-destination": "k8s_secrets", "conjur.org/k8s-secrets": "- db", "conjur.org/secrets-refresh-interval": "1s",
	}, "run")
	s := &spec.Spec.InitContainers[0]
	s.Env = append(s.Env, corev1.EnvVar{Name: "MY_POD_NAMESPACE", Value: w.namespace})
	spec.Spec.Volumes = append(spec.Spec.Volumes, corev1.Volume{Name: "db", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}})
	app := &spec.Spec.Containers[0]
	app.VolumeMounts = append(app.VolumeMounts, corev1.VolumeMount{Name: "db", MountPath: "/db"})
	p := w.start("shop", spec)
	p.ready()
	for _, password := range []string{"second", "third"} {
		w.set(map[string]string{"shop/password": password})
		p.awaitFile("/db/password", password)
	}
	p.awaitFile("/db/user", "anna")
}

// TestFilesAreRestoredAfterACrash of an application that has deleted them, as
// the Secrets Provider's design has it. The application asks for them with a
// sentinel file, or waits for the next refresh.
func TestFilesAreRestoredAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	spec := w.documented(files("secrets-refresh-interval", "1s"), "run", dbFile)
	spec.Spec.Containers[0].VolumeMounts[0].ReadOnly = false // it deletes files
	spec.Spec.Containers[0].SecurityContext.RunAsUser = new(int64(777))
	p := w.start("shop", spec)
	p.ready()
	if out, err := p.exec("app", "/app", "remove", dbFile); err != nil {
		t.Fatal(err, out)
	}
	_, _ = p.exec("app", "/app", "crash")
	p.awaitRestarts("app", 1)
	p.awaitFile(dbFile, db("first"))
	if n := p.restarts("syncer"); n != 0 {
		t.Errorf("Syncer was restarted %d times", n)
	}
}

// awaitLog waits until a container has printed a text.
func (p *pod) awaitLog(name, want string) {
	p.t.Helper()
	p.eventually("log of "+name+" with "+want, func() bool { return strings.Contains(p.log(name), want) })
}

// secret makes a Secret with a map.
func (w *world) secret(name, conjurMap string) {
	w.t.Helper()
	_, err := client.CoreV1().Secrets(w.namespace).Create(w.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"conjur-map": conjurMap},
	}, metav1.CreateOptions{})
	w.check(err)
}

// secretRules are the rights that docs/install.md names for listed Secrets.
func secretRules(names ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: names, Verbs: []string{"get", "list", "watch", "patch"}}}
}
