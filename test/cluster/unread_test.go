package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// narrow gives the world's processes the rights to the named Secrets only.
func (w *world) narrow(names ...string) {
	w.Helper()
	w.grantNamed(names...)
	w.Env["KUBECONFIG"] = plane.KubeconfigFor(w, plane.Token(w, w.namespace, "narrow"))
}

func (w *world) grantNamed(names ...string) {
	w.Helper()
	plane.Bind(w, w.namespace, "narrow",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "patch"}, ResourceNames: names},
		rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io", ""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})
}

func (w *world) provided() bool {
	_, err := os.Stat(filepath.Join(w.dir, "status", "CONJUR_SECRETS_PROVIDED"))
	return err == nil
}

// twoListed makes two Secrets of which the processes may read one.
func twoListed(t *testing.T) *world {
	w := newWorld(t)
	w.Variables("db/user", "api/key")
	w.secret("db", map[string]string{"user": "db/user"})
	w.secret("private", map[string]string{"key": "api/key"})
	w.oneShot("1", "private", "db")
	w.narrow("db")
	return w
}

func TestJobDeliversBesideWhatItMayNotRead(t *testing.T) {
	t.Parallel()
	w := twoListed(t)
	w.Env["RETRY_COUNT_LIMIT"] = "-1"
	p := w.start()
	w.awaitData("db", map[string]string{"user": w.Value["db/user"]})
	eventually(t, "a word about the other", func() bool { return strings.Contains(p.Log(), "is forbidden") })
	if w.provided() {
		t.Error("told the application that all is there")
	}
	w.grantNamed("private")
	if code := p.ExitCode(); code != 0 {
		t.Fatalf("status %d", code)
	}
	w.awaitData("private", map[string]string{"key": w.Value["api/key"]})
	if !w.provided() {
		t.Error("did not tell the application that all is there")
	}
}

func TestJobWaitsForTheRightToList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("a")
	w.secret("db", map[string]string{"a": "a"})
	w.oneShot("0")
	w.narrow("db")
	p := w.start()
	if code := p.ExitCode(); code != 1 {
		t.Errorf("status %d", code)
	}
	if log := p.Log(); !strings.Contains(log, "is forbidden") || strings.Contains(log, "delivered") || w.provided() {
		t.Error("something else than the list is blamed")
	}

	w.Env["RETRY_COUNT_LIMIT"] = "-1"
	p = w.start()
	eventually(t, "a word about the list", func() bool { return strings.Contains(p.Log(), "is forbidden") })
	plane.Bind(t, w.namespace, "narrow", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}})
	if code := p.ExitCode(); code != 0 {
		t.Errorf("status %d", code)
	}
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
}

func TestSidecarIsNotDoneBeforeItMayReadAll(t *testing.T) {
	t.Parallel()
	w := twoListed(t)
	w.Env["CONTAINER_MODE"] = "sidecar"
	p := w.start()
	w.awaitData("db", map[string]string{"user": w.Value["db/user"]})
	eventually(t, "a failure of the other", func() bool {
		return strings.Contains(p.Log(), "the content of secret/"+w.namespace+"/private is not known")
	})
	if w.provided() {
		t.Error("told the application that all is there")
	}
	w.grantNamed("private")
	eventually(t, "word that all is there", w.provided)
	w.awaitData("private", map[string]string{"key": w.Value["api/key"]})
	p.Stop()
}
