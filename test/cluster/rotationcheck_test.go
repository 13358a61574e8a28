package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCheckSaysAllThatIsMissing in Conjur and in the cluster, at once, and status
// who uses the set unasked.
func TestCheckSaysAllThatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Server.Policy("- !variable jwt\n- !permit { role: !host app, privileges: [read, execute], resource: !variable jwt }\n")
	w.settings = append(w.settings, `
rotation:
  sets:
  - set: jwt
    generate: {random: 32}
    migrate: cronjob/reencrypt
    confirm: {ask: "deployment/shop:8080/keys", restarted: deployment/other}
`)
	w.forged(w.namespace, "keys", "syncer") // as if it had been delivered
	w.as("reader", []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}},
	})
	path := w.configure()
	says := func(command string, wants ...string) string {
		t.Helper()
		p := w.Spawn(binary, w.Environ(), "rotate", command, "--config", path)
		p.ExitCode()
		for _, want := range wants {
			if !strings.Contains(p.Log(), want) {
				t.Errorf("%s does not say %q:\n%s", command, want, p.Log())
			}
		}
		return p.Log()
	}
	says("check", `lacks "update" on "jwt"`, `"jwt/control" is not declared`,
		"pods is forbidden", `deployments.apps "shop" not found`, `deployments.apps "other" not found`, `cannot get resource "jobs"`,
		"writing secret "+w.namespace+"/keys: ", `cannot patch resource "secrets"`)

	plane.Bind(t, w.namespace, "reader",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs", "cronjobs"}, Verbs: []string{"get"}})
	_, err := plane.Core.Pods(w.namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Spec: corev1.PodSpec{
		NodeName: "node-1", Containers: []corev1.Container{{Name: "reader", Image: "reader"}},
		Volumes: []corev1.Volume{{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys"}}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plane.Bind(t, w.namespace, "reader", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"update"}})
	if log := says("check", `"shop" not found`, `"reencrypt" not found`, w.namespace+"/reader"); strings.Contains(log, "writing secret") {
		t.Errorf("check is against writing by update: %s", log)
	}
	says("status", "jwt is used by Pods that confirm does not name: "+w.namespace+"/reader")
}
