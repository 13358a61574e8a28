//go:build node

package node

import (
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/secretsync/syncer/test/gobuild"
)

// The paths at which the application finds the delivered files.
const (
	secretsDir = "/conjur/secrets/"
	statusDir  = "/conjur/status/"
)

// documented is the Pod of docs/install.md, with this world's Conjur and the tests'
// application, which runs with these arguments.
func (w *world) documented(annotations map[string]string, args ...string) *corev1.Pod {
	w.t.Helper()
	root, err := gobuild.Root()
	w.check(err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	w.check(err)
	_, block, _ := strings.Cut(string(text), "In short, in the Pod's spec:\n\n```yaml\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		w.t.Fatal("docs/install.md has no Pod's spec")
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	w.check(sigsyaml.UnmarshalStrict([]byte(block), &p.Spec))
	s := &p.Spec.InitContainers[0]
	for i, e := range s.Env {
		switch e.Name {
		case "CONJUR_APPLIANCE_URL":
			s.Env[i].Value = w.address
		case "CONJUR_ACCOUNT":
			s.Env[i].Value = account
		case "CONJUR_AUTHN_URL":
			s.Env[i].Value = w.address + "/authn-jwt/cluster"
		}
	}
	s.Env = append(s.Env, corev1.EnvVar{Name: "CONJUR_SSL_CERTIFICATE", Value: w.ca})
	app := &p.Spec.Containers[0]
	app.Image, app.Args = appImage, args
	app.SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(10001))} // another than Syncer's
	p.Spec.ServiceAccountName = "app"
	p.Spec.TerminationGracePeriodSeconds = new(int64(5))
	return p
}

// files are the annotations for one file, db.json, with a user and a password.
// More may be added.
func files(more ...string) map[string]string {
	annotations := map[string]string{
		"conjur.org/secrets-destination":   "file",
		"conjur.org/conjur-secrets.db":     "- user: shop/user\n- password: shop/password\n",
		"conjur.org/secret-file-format.db": "json",
	}
	for i := 0; i+1 < len(more); i += 2 {
		annotations["conjur.org/"+more[i]] = more[i+1]
	}
	return annotations
}

// shop are the values of a world; db is what db.json has of them.
func shop() map[string]string {
	return map[string]string{"shop/user": "anna", "shop/password": "first"}
}

func db(password string) string { return `{"user":"anna","password":"` + password + `"}` }

const dbFile = secretsDir + "db.json"

// alive adds the probe by which the application is restarted after a change: a
// script that is beside the sentinel files, or Syncer's binary.
func alive(p *corev1.Pod, command ...string) {
	p.Spec.Containers[0].LivenessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}},
		PeriodSeconds: 1, FailureThreshold: 1, TimeoutSeconds: 30,
	}
}

// script is the probe as a script, and withShell the image that can run it.
const script = statusDir + "conjur-secrets-unchanged.sh"

func withShell(p *corev1.Pod) { p.Spec.Containers[0].Image = shellImage }
