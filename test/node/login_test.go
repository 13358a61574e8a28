//go:build node

package node

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/secretsync/syncer/pkg/conjurd"
	"github.com/secretsync/syncer/test/gobuild"
)

// TestCertificateIsBroughtIntoAContainerWithoutAShell: for authn-k8s, conjurd runs sh in the
// container, through the API server and the kubelet.
func TestCertificateIsBroughtIntoAContainerWithoutAShell(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	ca, err := conjurd.NewCA()
	w.check(err)
	w.set(map[string]string{"conjur/authn-k8s/cluster/ca/cert": string(ca.Cert), "conjur/authn-k8s/cluster/ca/key": string(ca.Key)})
	w.mayLookAtPods()
	spec := w.documented(files("secrets-refresh-interval", "1s"), "run", dbFile)
	s := &spec.Spec.InitContainers[0]
	set(s, "CONJUR_AUTHN_URL", w.address+"/authn-k8s/cluster")
	set(s, "CONJUR_AUTHN_LOGIN", "host/conjur/authn-k8s/cluster/apps/app")
	for name, path := range map[string]string{"MY_POD_NAME": "metadata.name", "MY_POD_NAMESPACE": "metadata.namespace"} {
		s.Env = append(s.Env, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}})
	}
	s.SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	s.VolumeMounts = append(s.VolumeMounts, corev1.VolumeMount{Name: "conjur-ssl", MountPath: "/etc/conjur/ssl"})
	spec.Spec.Volumes = append(spec.Spec.Volumes, corev1.Volume{Name: "conjur-ssl", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}})
	p := w.start("shop", spec)
	p.ready()
	w.set(map[string]string{"shop/password": "second"})
	p.awaitFile(dbFile, db("second"))
	if out, err := p.exec("syncer", "sh", "-c", "true"); err == nil {
		t.Errorf("sh -c succeeded: %s", out)
	}
}

// mayLookAtPods gives conjurd the rights that it needs for authn-k8s.
func (w *world) mayLookAtPods() {
	w.t.Helper()
	plane.Bind(w.t, w.namespace, "default",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "namespaces"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create", "get"}},
	)
}

// TestWrongAnnotationsAreDescribed: "kubectl describe pod" names each problem with the words
// of "syncer validate".
func TestWrongAnnotationsAreDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shop())
	annotations := files("secrets-refresh-interval", "soon", "log-level", "loud", "secret-file-format.db", "xml", "conjur-secrets.other", "- {", "retry-count-limit", "many")
	p := w.start("shop", w.documented(annotations, "run"))
	var text strings.Builder
	for name, value := range annotations {
		text.WriteString(name + "=" + strconv.Quote(value) + "\n")
	}
	path := filepath.Join(t.TempDir(), "annotations")
	w.check(os.WriteFile(path, []byte(text.String()), 0o600))
	problems := w.validate(path)
	if len(problems) < 5 {
		t.Fatalf("syncer validate found %q", problems)
	}
	for key, message := range problems {
		p.awaitDescription(message + ` {"key": "` + key + `"}`)
	}
	if c := container(p.get(), "app"); c.State.Running != nil {
		t.Error("the application runs")
	}
}

// validate returns the problems that "syncer validate" finds, by annotation.
func (w *world) validate(annotations string) map[string]string {
	w.t.Helper()
	root, err := gobuild.Root()
	w.check(err)
	cmd := exec.Command(filepath.Join(root, "bin", "linux-"+architecture, "syncer"), "validate", "--annotations", annotations)
	cmd.Env = []string{"CONJUR_APPLIANCE_URL=" + w.address, "CONJUR_ACCOUNT=" + account, "CONJUR_AUTHN_URL=" + w.address + "/authn-jwt/cluster", "CONTAINER_MODE=sidecar",
		"JWT_TOKEN_PATH=" + annotations} // a file that is there, as the token is in the Pod
	out, err := cmd.CombinedOutput()
	if err == nil {
		w.t.Fatalf("syncer validate found no problem:\n%s", out)
	}
	problems := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if line, found := strings.CutPrefix(line, "error: annotation "); found {
			key, message, _ := strings.Cut(strings.TrimSpace(line), ": ")
			problems[key] = message
		}
	}
	return problems
}
