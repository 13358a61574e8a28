package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// oneShot makes it a process that delivers listed Secrets once, with quick
// retries, as the Secrets Provider's Job is configured.
func (w *world) oneShot(retries string, names ...string) {
	delete(w.env, "NAMESPACE_ALLOWLIST")
	w.env["CONTAINER_MODE"] = "application"
	w.env["K8S_SECRETS"] = strings.Join(names, ",")
	w.env["RETRY_COUNT_LIMIT"], w.env["RETRY_INTERVAL_SEC"] = retries, "1"
	w.settings = nil
}

func TestJobDeliversListedSecretsAndEnds(t *testing.T) {
	w := newWorld(t)
	w.variables("db/user", "api/key")
	w.secret("db", map[string]string{"user": "db/user"}, func(s *corev1.Secret) { s.Labels = nil })
	w.secret("api", map[string]string{"key": "api/key"}, func(s *corev1.Secret) { s.Labels = nil })
	w.oneShot("3", "db", "api")
	if code := w.start().ExitCode(); code != 0 {
		t.Fatalf("status %d", code)
	}
	w.awaitData("db", map[string]string{"user": w.value["db/user"]})
	w.awaitData("api", map[string]string{"key": w.value["api/key"]})
}

func TestJobFailsForWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	w.variables("db/user")
	w.secret("db", map[string]string{"user": "db/user"})
	w.oneShot("1", "db", "nowhere")
	p := w.start()
	if code := p.ExitCode(); code != 1 {
		t.Fatalf("status %d", code)
	}
	if !strings.Contains(p.Log(), w.namespace+"/nowhere") {
		t.Error("the log does not name the Secret")
	}
	w.awaitData("db", map[string]string{"user": w.value["db/user"]}) // all the same
}

func TestJobWithoutAnySecretFails(t *testing.T) {
	w := newWorld(t)
	w.oneShot("0")
	p := w.start()
	if code := p.ExitCode(); code != 1 || !strings.Contains(p.Log(), "no Secret of the namespace has the label") {
		t.Errorf("status %d", code)
	}
}

func TestJobWaitsForASecret(t *testing.T) {
	w := newWorld(t)
	w.variables("db/user")
	w.oneShot("-1", "db")
	p := w.start()
	eventually(t, "a word about the missing Secret", func() bool { return strings.Contains(p.Log(), w.namespace+"/db") })
	w.secret("db", map[string]string{"user": "db/user"})
	if code := p.ExitCode(); code != 0 {
		t.Fatalf("status %d", code)
	}
	w.awaitData("db", map[string]string{"user": w.value["db/user"]})
}

func TestSidecarFillsMissingSecretWhenItAppears(t *testing.T) {
	w := newWorld(t)
	w.variables("db/user")
	delete(w.env, "NAMESPACE_ALLOWLIST")
	w.env["CONTAINER_MODE"], w.env["K8S_SECRETS"] = "sidecar", "db"
	p := w.start()
	eventually(t, "a word about the missing Secret", func() bool { return strings.Contains(p.Log(), w.namespace+"/db") })
	w.secret("db", map[string]string{"user": "db/user"}, func(s *corev1.Secret) { s.Labels = nil })
	w.awaitData("db", map[string]string{"user": w.value["db/user"]})

	// Deleted and made anew, as a deployment tool does it.
	if err := w.core.Secrets(w.namespace).Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.secret("db", map[string]string{"user": "db/user"}, func(s *corev1.Secret) { s.Labels = nil })
	w.awaitData("db", map[string]string{"user": w.value["db/user"]})
	p.Stop()
}
