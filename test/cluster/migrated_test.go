package cluster

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
)

// secretsProviderRules are what the Role of the Secrets Provider grants where
// Secrets are found by label, and nothing else.
func secretsProviderRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "update", "list"}}}
}

// TestTheRoleOfTheSecretsProviderSuffices: without the rights to leases, patch, watch and
// Events, everything is delivered and kept fresh, and each missing right is reported once.
func TestTheRoleOfTheSecretsProviderSuffices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.as("migrated", secretsProviderRules())
	w.Variables("a", "b")
	w.secret("db", map[string]string{"a": "a", "b": "b"}, func(s *corev1.Secret) {
		s.Data["a"], s.Data["mine"] = []byte("of the former"), []byte("theirs")
	})
	p := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"], "b": w.Value["b"], "mine": "theirs"})
	eventually(t, "ready", w.ready)
	w.Renew("a")
	w.awaitData("db", map[string]string{"a": w.Value["a"], "b": w.Value["b"], "mine": "theirs"})
	w.edit("db", func(s *corev1.Secret) { s.Data["conjur-map"] = []byte("b: b\n") })
	w.awaitData("db", map[string]string{"a": "", "b": w.Value["b"], "mine": "theirs"})
	for _, words := range []string{"works without an election", "grants the verb patch"} {
		if n := len(p.Lines(words)); n != 1 {
			t.Errorf("%d lines say %q, want one", n, words)
		}
	}
	for _, words := range []string{"works without an election", "grants the verb patch", "until then"} {
		if n := len(p.Lines(words, "Limited")); n != 1 {
			t.Errorf("%d warnings say %q, want one", n, words)
		}
	}
	p.Stop()
}

// TestSomeOfAllNamespacesAreServed: with rights in some, "*" means those, and
// the log names the others, twenty of them, where the list of namespaces may be
// read.
func TestSomeOfAllNamespacesAreServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.as("partly", secretsProviderRules())
	joined := plane.Namespace(t)
	var closedOnes []string
	for range mostNamed + 1 {
		made, err := plane.Core.Namespaces().Create(t.Context(), &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "closed-"}, // comes before those of other tests
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		closedOnes = append(closedOnes, made.Name)
	}
	closed := slices.Min(closedOnes)
	plane.Bind(t, joined, w.namespace+"/partly", secretsProviderRules()...)
	w.Env["NAMESPACE_ALLOWLIST"] = "*"
	id := "some/" + w.namespace // no other test's
	w.Variables(id)
	w.secret("db", map[string]string{"v": id})
	for _, namespace := range []string{joined, closed} {
		w.secretIn(namespace, "db", map[string]string{"v": id})
	}
	value := func(namespace string) string { return string(w.readIn(namespace, "db").Data["v"]) }
	p := w.start()
	w.awaitData("db", map[string]string{"v": w.Value[id]})
	eventually(t, "a word on what is known", func() bool {
		return len(p.Lines("only these namespaces are known", w.namespace)) > 0
	})
	eventually(t, "ready", w.ready)
	p.Stop()

	grantNamespaces(t, w.namespace, "partly", "list")
	w.moveAddress()
	p = w.start()
	eventually(t, "the Secret of another namespace", func() bool { return value(joined) == w.Value[id] })
	eventually(t, "a word on what is closed", func() bool { return len(p.Lines("namespaces are not served", closed)) > 0 })
	if line := p.Lines("namespaces are not served", closed)[0]; strings.Count(line, "closed-") != mostNamed {
		t.Errorf("want the names of %d namespaces, in: %s", mostNamed, line)
	}
	w.Renew(id)
	eventually(t, "the new value", func() bool { return value(joined) == w.Value[id] && value(w.namespace) == w.Value[id] })
	if got := value(closed); got != "" {
		t.Errorf("the closed namespace was served: %q", got)
	}
	if lines := p.Lines("not served", joined); len(lines) > 0 {
		t.Errorf("said of a namespace that is served:\n%s", strings.Join(lines, ""))
	}
	p.Stop()
}

// grantNamespaces gives a service account verbs for the namespaces, until the
// test ends or revoke is called.
func grantNamespaces(t *testing.T, namespace, account string, verbs ...string) (revoke func()) {
	t.Helper()
	rbac, err := rbacv1client.NewForConfig(plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	name := metav1.ObjectMeta{Name: "namespaces-" + namespace}
	role := &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: verbs}}}
	if _, err := rbac.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}
	if _, err := rbac.ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := rbac.ClusterRoleBindings().Delete(t.Context(), name.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
