package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/secretsync/syncer/test/kubetest"
)

// deployment makes a Deployment that nothing runs; only its Pod template is
// looked at.
func (w *world) deployment(name string) appsv1client.DeploymentInterface {
	w.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
			},
		},
	}
	deployments := plane.Apps.Deployments(w.namespace)
	if _, err := deployments.Create(w.Context(), d, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	return deployments
}

func TestWorkloadIsRestartedOnceForSeveralSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings = append(w.settings, "restarts: {quietPeriod: 2s}")
	w.Variables("a", "b")
	deployments := w.deployment("shop")
	uses := func(s *corev1.Secret) { s.Annotations["conjur.org/restart-workloads"] = "deployment/shop" }
	w.secret("first", map[string]string{"a": "a"}, uses)
	w.secret("second", map[string]string{"b": "b"}, uses)
	revisions := func() (first, second string) {
		d, err := deployments.Get(t.Context(), "shop", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		noted := d.Spec.Template.Annotations
		return noted["conjur.org/secret-revision.first"], noted["conjur.org/secret-revision.second"]
	}
	begin := time.Now()
	restarts := func() int {
		return len(plane.Calls(t, kubetest.ByUser(w.user()), kubetest.Since(begin), func(c kubetest.Call) bool { return c.Resource == "deployments" && c.Verb == "patch" }))
	}
	p := w.start()
	w.awaitData("first", map[string]string{"a": w.Value["a"]})
	w.awaitData("second", map[string]string{"b": w.Value["b"]})
	w.polls(5) // longer than the quiet period
	if n := restarts(); n != 0 {
		t.Errorf("filled for the first time: %d restarts", n)
	}
	w.Renew("a")
	w.Renew("b")
	eventually(t, "both revisions on the Pod template", func() bool { a, b := revisions(); return a != "" && b != "" })
	if n := restarts(); n != 1 {
		t.Errorf("two Secrets have changed at once: %d restarts", n)
	}
	eventually(t, "an Event on the workload", func() bool { return len(w.events("shop", "Restarted")) > 0 })

	// Neither a restart of Syncer nor a passing interval is a reason.
	p.Stop()
	begin = time.Now()
	p = w.start()
	eventually(t, "ready", w.ready)
	w.polls(4)
	if n := restarts(); n != 0 {
		t.Errorf("nothing has changed: %d restarts", n)
	}
	before, _ := revisions()
	w.Renew("a")
	eventually(t, "the next restart", func() bool { a, _ := revisions(); return a != before })
	p.Stop()
}

// TestOwnerThatOverwritesThePodTemplate causes no restarts, and neither does a newly named
// workload.
func TestOwnerThatOverwritesThePodTemplate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings = append(w.settings, "restarts: {quietPeriod: 1s}")
	w.Variables("a")
	w.deployment("later")
	deployments := w.deployment("shop")
	noted := func(name string) string {
		d, err := deployments.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return d.Spec.Template.Annotations["conjur.org/secret-revision.db"]
	}
	revert := func() {
		if _, err := deployments.Patch(t.Context(), "shop", types.MergePatchType, []byte(`{"spec":{"template":{"metadata":{"annotations":null}}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.secret("db", map[string]string{"a": "a"}, func(s *corev1.Secret) { s.Annotations["conjur.org/restart-workloads"] = "deployment/shop" })
	p := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	w.Renew("a")
	eventually(t, "the restart", func() bool { return noted("shop") != "" })
	remembered := func() string { return w.read("db").Annotations["conjur.org/restarted"] }
	eventually(t, "the memo", func() bool { return strings.Contains(remembered(), noted("shop")) })
	p.Stop()
	revert()
	if _, err := plane.Core.Secrets(w.namespace).Patch(t.Context(), "db", types.MergePatchType, []byte(`{"metadata":{"annotations":{"conjur.org/restart-workloads":"deployment/shop, deployment/later"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		p = w.start()
		eventually(t, "ready", w.ready)
		w.polls(4)
		p.Stop()
		if noted("shop") != "" || noted("later") != "" {
			t.Fatal("restarted without a change")
		}
	}
	if events := w.events("db", "RestartReverted"); len(events) != 1 {
		t.Errorf("the Events are %q, want one", events)
	}
	p = w.start()
	w.Renew("a")
	eventually(t, "a restart of both", func() bool { return noted("shop") != "" && noted("later") == noted("shop") })
	p.Stop()
}

func TestWorkloadsOfEachKindAreRestarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings = append(w.settings, "restarts: {quietPeriod: 1s}")
	w.Variables("a")
	labels := map[string]string{"app": "shop"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	meta := metav1.ObjectMeta{Name: "shop"}
	if _, err := plane.Apps.StatefulSets(w.namespace).Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := plane.Apps.DaemonSets(w.namespace).Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.secret("db", map[string]string{"a": "a"}, func(s *corev1.Secret) {
		s.Annotations["conjur.org/restart-workloads"] = "statefulset/shop, daemonset/shop"
	})
	p := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	w.Renew("a")
	eventually(t, "the revision on both Pod templates", func() bool {
		set, err := plane.Apps.StatefulSets(w.namespace).Get(t.Context(), "shop", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		daemons, err := plane.Apps.DaemonSets(w.namespace).Get(t.Context(), "shop", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		const revision = "conjur.org/secret-revision.db"
		return set.Spec.Template.Annotations[revision] != "" && daemons.Spec.Template.Annotations[revision] != ""
	})
	p.Stop()
}

// TestWorkloadThatCannotBeRestartedIsToldOf: at the Secret that asks for it,
// which is delivered all the same.
func TestWorkloadThatCannotBeRestartedIsToldOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settings = append(w.settings, "restarts: {quietPeriod: 1s}")
	w.Variables("a")
	w.deployment("shop")
	w.settings[1] = fmt.Sprintf("server: {address: %q, status: true}", w.address)
	w.as("unable", slices.DeleteFunc(slices.Clone(rights(t)), func(r rbacv1.PolicyRule) bool { return r.Resources[0] == "deployments" }))
	w.secret("db", map[string]string{"a": "a"}, func(s *corev1.Secret) {
		s.Annotations["conjur.org/restart-workloads"] = "deployment/shop, statefulset/nosuch"
	})
	p := w.start()
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	for _, want := range []string{`deployments.apps "shop" is forbidden`, `there is no statefulset/nosuch`} {
		eventually(t, "an Event with "+want, func() bool {
			return slices.ContainsFunc(w.events("db", "RestartFailed"), func(message string) bool { return strings.Contains(message, want) })
		})
	}
	w.secret("slip", nil, func(s *corev1.Secret) { // its map has another name
		s.Data = map[string][]byte{"conjur_map": []byte("a: a")}
	})
	w.secret("vain", map[string]string{"a": "a"}, func(s *corev1.Secret) { s.Annotations["conjur.org/restart-workload"] = "deployment/shop" })
	for secret, want := range map[string][]string{
		"vain": {"conjur.org/restart-workload: not an annotation of a Secret"},
		"db":   {`deployment/shop: `, `deployments.apps \"shop\" is forbidden`, "statefulset/nosuch: there is no such workload"},
		"slip": {"conjur-map: there is neither a map nor a group"},
	} {
		target := "secret/" + w.namespace + "/" + secret
		eventually(t, "a limited "+secret, func() bool {
			_, status := w.get("/status.json")
			_, metrics := w.get("/metrics")
			_, of, there := strings.Cut(status, `"`+target+`"`)
			of, _, _ = strings.Cut(of, "}")
			return there && strings.Contains(of, `"limited"`) && !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(of, text) }) &&
				strings.Contains(metrics, fmt.Sprintf(`syncer_target_limited{identity="default",target=%q} 1`, target))
		})
	}
	w.Renew("a")
	w.awaitData("db", map[string]string{"a": w.Value["a"]})
	p.Stop()
}
