package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/kubetest"
	"github.com/secretsync/syncer/test/proctest"
)

// dividing installs and starts a Deployment that serves the namespaces of some teams of
// the world, under what the chart grants, and its policy.
func (w *world) dividing(release string, teams ...string) *proctest.Process {
	w.Helper()
	settings := w.selecting(teams)
	values := "config:\n  conjur: {applianceUrl: 'https://conjur.test', account: cluster, authnUrl: 'https://conjur.test/authn-jwt/cluster'}\n  " + settings
	deploy.Connect(w, plane.Config()).Install(w, deploy.Release{Name: release, Namespace: w.namespace, Values: values})
	return w.again(release, teams...)
}

// selecting returns the setting that selects the namespaces of some teams.
func (w *world) selecting(teams []string) string {
	var values []string
	for _, team := range teams {
		values = append(values, w.namespace+team)
	}
	return fmt.Sprintf("kubernetes: {namespaceSelector: 'team in (%s)'}", strings.Join(values, ", "))
}

// again starts an installed Deployment, with other teams perhaps.
func (w *world) again(release string, teams ...string) *proctest.Process {
	w.Helper()
	w.Env["KUBECONFIG"] = plane.KubeconfigFor(w, plane.Token(w, w.namespace, release))
	delete(w.Env, "NAMESPACE_ALLOWLIST")
	w.moveAddress()
	w.settings = append(w.settings[:3:3], w.selecting(teams), fmt.Sprintf("leaderElection: {leaseName: %s}", release))
	return w.start()
}

// team makes a namespace of a team, with a Secret.
func (w *world) team(name, id string) (namespace string) {
	w.Helper()
	namespace = plane.Namespace(w)
	w.assign(namespace, name)
	w.secretIn(namespace, "db", map[string]string{"v": id})
	return namespace
}

// assign gives a namespace to a team, or to nobody for "".
func (w *world) assign(namespace, team string) {
	w.Helper()
	label := "null"
	if team != "" {
		label = fmt.Sprintf("%q", w.namespace+team)
	}
	if _, err := plane.Core.Namespaces().Patch(w.Context(), namespace, types.MergePatchType, []byte(`{"metadata":{"labels":{"team":`+label+`}}}`), metav1.PatchOptions{}); err != nil {
		w.Fatal(err)
	}
}

// awaitIn waits until the Secret of a namespace has the value of a variable.
func (w *world) awaitIn(namespace, id string) {
	w.Helper()
	eventually(w, "the value of "+id+" in "+namespace, func() bool { return string(w.readIn(namespace, "db").Data["v"]) == w.Value[id] })
}

// writes counts the writes of the Secrets of a namespace by the Deployments.
func (w *world) writes(namespace string, releases ...string) (n int) {
	w.Helper()
	for _, release := range releases {
		n += len(plane.Calls(w, kubetest.ByUser(kubetest.UserName(w.namespace, release)), func(c kubetest.Call) bool {
			return c.Resource == "secrets" && c.Namespace == namespace && c.Verb != "get" && c.Verb != "list" && c.Verb != "watch" && c.Code < 300
		}))
	}
	return n
}

// TestANamespaceIsHandedOver: by its label, without a gap and without a second write,
// also while values change; and it is left alone without the label.
func TestANamespaceIsHandedOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("v", "beat")
	moved, other := w.team("a", "v"), w.team("b", "beat")
	a, b := w.dividing("a", "a"), w.dividing("b", "b")
	w.awaitIn(moved, "v")
	w.awaitIn(other, "beat")

	w.assign(moved, "b")
	eventually(t, "both to say so", func() bool {
		return len(a.Lines("Namespaces left", moved)) == 1 && len(b.Lines("Namespaces joined", moved)) == 1
	})
	w.secretIn(moved, "later", map[string]string{"v": "v"})
	eventually(t, "the new owner to fill a Secret", func() bool { return string(w.readIn(moved, "later").Data["v"]) == w.Value["v"] })
	if n := w.writes(moved, "a", "b"); n != 2 {
		t.Errorf("%d writes after the hand-over, want one of each Secret", n)
	}
	for i := range 6 { // with a value that changes meanwhile
		before := w.writes(moved, "a", "b")
		w.assign(moved, [...]string{"a", "b"}[i%2])
		w.Renew("v")
		w.awaitIn(moved, "v")
		eventually(t, "the value in the other Secret", func() bool { return string(w.readIn(moved, "later").Data["v"]) == w.Value["v"] })
		if n := w.writes(moved, "a", "b") - before; n != 2 {
			t.Errorf("%d writes of a value during a hand-over, want one of each Secret", n)
		}
	}

	w.assign(moved, "")
	eventually(t, "a word that nobody serves it", func() bool { return len(b.Lines("No Deployment serves", moved)) == 1 })
	old, writes := w.Value["v"], w.writes(moved, "a", "b")
	w.Renew("v")
	w.Renew("beat")
	w.awaitIn(other, "beat")
	w.polls(3)
	if got := string(w.readIn(moved, "db").Data["v"]); got != old || w.writes(moved, "a", "b") != writes {
		t.Errorf("a namespace that nobody serves was written: %q", got)
	}
	w.assign(moved, "a")
	w.awaitIn(moved, "v")
	if n := len(a.Lines("No Deployment serves")) + len(b.Lines("No Deployment serves")); n != 1 {
		t.Errorf("%d lines say that nobody serves it", n)
	}
	a.Stop()
	b.Stop()
}

// TestSelectorsThatOverlap: the older Lease decides, also while its Deployment is away
// for a while.
func TestSelectorsThatOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("v")
	both, own := w.team("a", "v"), w.team("b", "v")
	a := w.dividing("a", "a")
	w.awaitIn(both, "v")
	b := w.dividing("b", "b", "a")
	w.awaitIn(own, "v")
	eventually(t, "a word on the conflict", func() bool { return len(b.Lines("Limited", "the older Lease a", both)) == 1 })
	w.awaitReadyz(func(code int, why string) bool {
		return code == http.StatusOK && strings.Contains(why, "the older Lease a")
	})
	w.Renew("v")
	w.awaitIn(both, "v")
	w.awaitIn(own, "v")
	a.Stop()
	old := w.Value["v"]
	w.Renew("v")
	w.awaitIn(own, "v")
	w.polls(3)
	if got := string(w.readIn(both, "db").Data["v"]); got != old || w.writes(both, "b") > 0 {
		t.Errorf("the younger Deployment wrote %q", got)
	}
	if err := w.leases().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitIn(both, "v")
	b.Stop()
}

// TestSelectorsThatAreSwitched: two Deployments that exchange their selectors write each
// value once. Of two with the same selector, the older Lease decides.
func TestSelectorsThatAreSwitched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("v")
	spaces := []string{w.team("a", "v"), w.team("b", "v")}
	a, b := w.dividing("a", "a"), w.dividing("b", "b")
	for _, namespace := range spaces {
		w.awaitIn(namespace, "v")
	}
	a.Stop()
	b.Stop()
	w.Renew("v")
	a, b = w.again("a", "b"), w.again("b", "a")
	for i, namespace := range spaces {
		w.awaitIn(namespace, "v")
		if of := []string{"a", "b"}; w.writes(namespace, of[i]) != 1 || w.writes(namespace, of[1-i]) != 1 {
			t.Errorf("namespace %d: %d writes by a and %d by b, want the first value by one and the second by the other", i, w.writes(namespace, "a"), w.writes(namespace, "b"))
		}
	}
	b.Stop()
	b = w.again("b", "b")
	eventually(t, "a word on the conflict", func() bool { return len(b.Lines("Limited", "the older Lease a", spaces[1])) == 1 })
	w.Renew("v")
	w.awaitIn(spaces[1], "v")
	if n := w.writes(spaces[1], "b"); n != 1 {
		t.Errorf("%d writes by the younger Deployment, want its first one only", n)
	}
	a.Stop()
	b.Stop()
}

// TestASelectorNeedsARight: the log and the probe name each missing right, and nothing is
// written without it.
func TestASelectorNeedsARight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Variables("v")
	w.secret("db", map[string]string{"v": "v"})
	w.assign(w.namespace, "a")
	delete(w.Env, "NAMESPACE_ALLOWLIST")
	w.settings = append(w.settings, fmt.Sprintf("kubernetes: {namespaceSelector: team=%sa}", w.namespace))
	p := w.start()
	unready := func(words string) {
		t.Helper()
		eventually(t, "a word on the right", func() bool { return len(p.Lines("Failing", words)) > 0 })
		w.awaitReadyz(func(code int, why string) bool {
			return code != http.StatusOK && strings.Contains(why, words)
		})
	}
	unready("namespaceSelector must watch all namespaces")
	revoke := grantNamespaces(t, w.namespace, "syncer", "get", "list", "watch")
	unready("must grant the verb list for leases")
	plane.Bind(t, w.namespace, "syncer", rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"list"}})
	w.awaitIn(w.namespace, "v")
	eventually(t, "ready", w.ready)

	revoke()
	syncer, err := corev1client.NewForConfig(plane.ConfigFor(plane.Token(t, w.namespace, "syncer")))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the right to be gone", func() bool {
		_, err := syncer.Namespaces().Get(t.Context(), w.namespace, metav1.GetOptions{})
		return apierrors.IsForbidden(err)
	})
	old := w.Value["v"]
	w.Renew("v")
	eventually(t, "a refused write", func() bool { return len(p.Lines("the owner of the namespace is unknown")) > 0 })
	if got := string(w.read("db").Data["v"]); got != old {
		t.Errorf("written without knowing the owner: %q", got)
	}
	grantNamespaces(t, w.namespace, "syncer", "get", "list", "watch")
	w.awaitIn(w.namespace, "v")
	p.Stop()
}
