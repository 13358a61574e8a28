package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// oneShot makes it a process that delivers listed Secrets once, with short pauses between
// retries, like the Secrets Provider's Job.
func (w *world) oneShot(retries string, names ...string) {
	delete(w.Env, "NAMESPACE_ALLOWLIST")
	w.Env["CONTAINER_MODE"] = "application"
	w.Env["K8S_SECRETS"] = strings.Join(names, ",")
	w.Env["RETRY_COUNT_LIMIT"], w.Env["RETRY_INTERVAL_SEC"] = retries, "1"
	w.settings = nil
}

func TestJobDeliversListedSecretsAndEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("db/user", "api/key")
	w.secret("db", map[string]string{"user": "db/user"}, func(s *corev1.Secret) { s.Labels = nil })
	w.secret("api", map[string]string{"key": "api/key"}, func(s *corev1.Secret) { s.Labels = nil })
	w.oneShot("3", "db", "api")
	if code := w.start().ExitCode(); code != 0 {
		t.Fatalf("status %d", code)
	}
	w.awaitData("db", map[string]string{"user": w.Value["db/user"]})
	w.awaitData("api", map[string]string{"key": w.Value["api/key"]})
}

func TestJobFailsForWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("db/user")
	w.secret("db", map[string]string{"user": "db/user"})
	w.oneShot("1", "db", "nowhere")
	p := w.start()
	if code := p.ExitCode(); code != 1 {
		t.Fatalf("status %d", code)
	}
	if !strings.Contains(p.Log(), w.namespace+"/nowhere") {
		t.Error("the log does not name the Secret")
	}
	w.awaitData("db", map[string]string{"user": w.Value["db/user"]}) // all the same
}

// migrate tells what this means for a container that refers to the key.
func TestJobRemovesTheKeyOfADeletedVariableAndFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("db/user", "db/password")
	w.secret("db", map[string]string{"user": "db/user", "password": "db/password"})
	w.oneShot("3", "db")
	if code := w.start().ExitCode(); code != 0 {
		t.Fatalf("status %d", code)
	}
	w.Remove("db/password")
	if code := w.start().ExitCode(); code != 1 {
		t.Fatalf("status %d", code)
	}
	w.awaitData("db", map[string]string{"user": w.Value["db/user"], "password": ""})
}

func TestJobWithoutAnySecretFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.oneShot("0")
	p := w.start()
	if code := p.ExitCode(); code != 1 || !strings.Contains(p.Log(), "no Secret of the namespace has the label") {
		t.Errorf("status %d", code)
	}
}

func TestSidecarFillsMissingSecretWhenItAppears(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("db/user")
	delete(w.Env, "NAMESPACE_ALLOWLIST")
	w.Env["CONTAINER_MODE"], w.Env["K8S_SECRETS"] = "sidecar", "db"
	p := w.start()
	eventually(t, "a word about the missing Secret", func() bool { return strings.Contains(p.Log(), w.namespace+"/db") })
	w.secret("db", map[string]string{"user": "db/user"}, func(s *corev1.Secret) { s.Labels = nil })
	w.awaitData("db", map[string]string{"user": w.Value["db/user"]})

	// Deleted and created again, as a deployment tool does.
	if err := plane.Core.Secrets(w.namespace).Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.secret("db", map[string]string{"user": "db/user"}, func(s *corev1.Secret) { s.Labels = nil })
	w.awaitData("db", map[string]string{"user": w.Value["db/user"]})
	p.Stop()
}

// TestJobThatFailsAfterItDelivered: a Job fails if a Secret that it delivered is no longer
// current at the end.
func TestJobThatFailsAfterItDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("db/user", "api/key")
	w.secret("db", map[string]string{"user": "db/user"})
	w.oneShot("-1", "db", "late")
	p := w.start()
	w.awaitData("db", map[string]string{"user": w.Value["db/user"]})
	w.edit("db", func(s *corev1.Secret) { s.Data["conjur-map"] = []byte("user: db/user\nbad: 17\n") })
	eventually(t, "a word about the definition", func() bool { return len(p.Lines("Failing", w.namespace+"/db", "bad")) > 0 })
	w.secret("late", map[string]string{"key": "api/key"})
	if code := p.ExitCode(); code != 1 {
		t.Errorf("status %d", code)
	}
	if len(p.Lines("not up to date: secret/"+w.namespace+"/db")) != 1 || len(p.Lines("were not delivered")) > 0 {
		t.Error("the log does not say what is wrong")
	}
	w.awaitData("late", map[string]string{"key": w.Value["api/key"]})
	w.awaitData("db", map[string]string{"user": w.Value["db/user"]})
}

// TestSecretsNeedNoStatusFolder, because readers of Secrets do not use it.
func TestSecretsNeedNoStatusFolder(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"application", "sidecar", "standalone"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Variables("a")
			w.secret("db", map[string]string{"a": "a"})
			w.Env["CONTAINER_MODE"] = mode
			if mode != "standalone" {
				delete(w.Env, "NAMESPACE_ALLOWLIST")
				w.Env["K8S_SECRETS"] = "db"
			}
			if mode == "application" {
				w.oneShot("0", "db")
			}
			file := filepath.Join(w.dir, "file")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p := w.start("--status-dir", filepath.Join(file, "status"))
			w.awaitData("db", map[string]string{"a": w.Value["a"]})
			if mode == "application" {
				p.Exit(0)
				return
			}
			w.awaitData("db", map[string]string{"a": w.Renew("a")})
			p.Stop()
			if lines := p.Lines("Failing"); len(lines) > 0 {
				t.Errorf("that is no trouble: %s", lines[0])
			}
		})
	}
}
