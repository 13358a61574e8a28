package cluster

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/kubetest"
)

// listedValues are those of a release for two Secrets by name.
const listedValues = `
config:
  conjur: {applianceUrl: "https://conjur.test", account: cluster, authnUrl: "https://conjur.test/authn-jwt/cluster"}
  kubernetes: {secrets: [db, {name: api, map: {key: b}}]}
`

// as makes all later processes run under a service account with exactly these rights. It
// returns the account's name in the audit log.
func (w *world) as(account string, rules []rbacv1.PolicyRule) string {
	w.Helper()
	plane.Bind(w, w.namespace, account, rules...)
	w.Env["KUBECONFIG"] = plane.KubeconfigFor(w, plane.Token(w, w.namespace, account))
	return kubetest.UserName(w.namespace, account)
}

// TestListedSecretsNeedRightsByNameOnly: also for their watches.
func TestListedSecretsNeedRightsByNameOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("a", "b")
	user := w.as("listed", deploy.Release{Values: listedValues}.Rules(t, "syncer"))
	w.settings = append(w.settings, "kubernetes: {secrets: [db, {name: api, map: {key: b}}]}")
	w.secret("db", map[string]string{"a": "a"})
	w.secret("other", map[string]string{"a": "a"})
	p := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	w.secret("api", nil)
	w.awaitData("api", map[string]string{"key": w.Value["b"]})
	w.remake("db", map[string]string{"b": "b"})
	w.awaitData("db", map[string]string{"b": w.Value["b"]})
	if w.read("other").Data["a"] != nil {
		t.Error("a Secret that is not listed was filled")
	}
	for _, call := range plane.Calls(t, kubetest.ByUser(user), func(c kubetest.Call) bool { return c.Code == 403 }) {
		t.Errorf("refused: %+v", call)
	}
	p.Stop()
}

// TestListedSecretsAreKeptWithoutAWatch by reads at intervals.
func TestListedSecretsAreKeptWithoutAWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("a", "b")
	rules := deploy.Release{Values: listedValues}.Rules(t, "syncer")
	for i, rule := range rules {
		if rule.Resources[0] == "secrets" {
			rules[i].Verbs = []string{"get", "patch"}
		}
	}
	w.as("poor", rules)
	w.settings = append(w.settings, "kubernetes: {secrets: [db, {name: api, map: {key: b}}]}")
	w.secret("db", map[string]string{"a": "a"})
	p := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	w.secret("api", nil)
	w.awaitData("api", map[string]string{"key": w.Value["b"]})
	w.Renew("a")
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	w.remake("db", map[string]string{"b": "b"})
	w.awaitData("db", map[string]string{"b": w.Value["b"]})
	if err := plane.Core.Secrets(w.namespace).Delete(t.Context(), "api", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a word about the Secret that went", func() bool { return len(p.Lines("there is no Secret", w.namespace+"/api")) > 1 })
	w.secret("api", nil)
	w.awaitData("api", map[string]string{"key": w.Value["b"]})
	eventually(t, "ready", w.ready)
	p.Stop()
}

// TestRightsComeAndGo: an object that cannot be read or written is reported, and corrected
// when the right returns.
func TestRightsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("a", "b")
	var secrets, others []rbacv1.PolicyRule
	for _, rule := range rights(t) {
		if rule.Resources[0] == "secrets" {
			secrets = append(secrets, rule)
		} else {
			others = append(others, rule)
		}
	}
	w.as("fickle", others)
	w.secret("db", map[string]string{"a": "a"})
	p := w.start()
	eventually(t, "a word about the rights", func() bool { return len(p.Lines("watch of secrets", "forbidden")) > 0 })
	unbind := plane.Bind(t, w.namespace, "fickle", secrets...)
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	unbind()
	w.Renew("a")
	eventually(t, "an Event about the right", func() bool {
		return slices.ContainsFunc(w.events("db", "SyncFailed"), func(message string) bool { return strings.Contains(message, "must grant the verb get for secrets") })
	})
	plane.Bind(t, w.namespace, "fickle", secrets...)
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	w.secret("new", map[string]string{"b": "b"})
	w.awaitData("new", map[string]string{"b": w.Value["b"]})
	eventually(t, "ready", w.ready)
	p.Stop()
}
