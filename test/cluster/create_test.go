package cluster

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/deploy"
)

// createValues are those of a release that makes one Secret.
const createValues = `
config:
  conjur: {applianceUrl: "https://conjur.test", account: cluster, authnUrl: "https://conjur.test/authn-jwt/cluster"}
  kubernetes: {secrets: [{name: made, create: true, map: {v: a}}]}
`

// grant gives the service account further rules in the world's namespace.
func (w *world) grant(rules []rbacv1.PolicyRule) {
	w.Helper()
	plane.Bind(w, w.namespace, "syncer", rules...)
}

func TestConfiguredSecretIsMadeAndKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.grant(deploy.Release{Values: createValues}.Rules(t, "syncer"))
	w.Variables("a")
	w.settings = append(w.settings, "kubernetes: {secrets: [{name: made, create: true, map: {v: a}}]}")
	p := w.start()
	w.awaitData("made", map[string]string{"v": w.Value["a"]})
	value := w.Renew("a")
	w.awaitData("made", map[string]string{"v": value})
	if err := plane.Core.Secrets(w.namespace).Delete(t.Context(), "made", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitData("made", map[string]string{"v": value})
	p.Stop()
}

// TestReplicasHandOver: a leader that is told to end releases its Lease at once, and no
// write is lost or repeated.
func TestReplicasHandOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("a")
	w.secret("db", map[string]string{"a": "a"})
	first := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	second := w.standby()
	revision := w.read("db").Annotations["conjur.org/secret-revision"]
	first.Stop()
	eventually(t, "the second to work", func() bool {
		_, metrics := w.get("/metrics")
		return strings.Contains(metrics, "\nsyncer_leader 1\n")
	})
	w.polls(2)
	if now := w.read("db").Annotations["conjur.org/secret-revision"]; now != revision {
		t.Error("the hand-over wrote what was there")
	}
	value := w.Renew("a")
	w.awaitData("db", map[string]string{"a": value})
	second.Stop()
}
