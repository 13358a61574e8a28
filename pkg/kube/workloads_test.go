package kube_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/test/kubetest"
)

// deploy makes one workload of each kind, all named "web", with a Pod template
// that has one annotation.
func deploy(t *testing.T, namespace string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "web"}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	pods := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels, Annotations: map[string]string{"theirs": "1"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
	apps := connect(t, "").Apps
	var errs [3]error
	_, errs[0] = apps.Deployments(namespace).Create(t.Context(), &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: pods}}, metav1.CreateOptions{})
	_, errs[1] = apps.StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: pods}}, metav1.CreateOptions{})
	_, errs[2] = apps.DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: pods}}, metav1.CreateOptions{})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestThePodsOfAWorkloadAreAnnotated(t *testing.T) {
	t.Parallel()
	ns := cluster.Namespace(t)
	deploy(t, ns)
	for _, resource := range []string{"deployments", "statefulsets", "daemonsets"} {
		cluster.Bind(t, ns, "app", rules(resource, "get", "patch"))
	}
	c := connect(t, cluster.Token(t, ns, "app"))
	for _, kind := range []string{"deployment", "statefulset", "daemonset"} {
		w := targets.Workload{Kind: kind, Namespace: ns, Name: "web"}
		before, err := c.PodTemplate(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second changes nothing
			read, err := c.PodTemplate(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Annotate(t.Context(), w, read.Version, map[string]string{"conjur.org/x": "2"}); err != nil {
				t.Fatal(err)
			}
			if err := c.Annotate(t.Context(), w, before.Version, map[string]string{"conjur.org/x": "1"}); !apierrors.IsConflict(err) {
				t.Errorf("%s: annotated as it was before: %v", w, err)
			}
		}
		got, err := c.PodTemplate(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]string{"theirs": "1", "conjur.org/x": "2"}; !maps.Equal(got.Annotations, want) || got.Created.IsZero() {
			t.Errorf("%s: annotations %v, created %v; want %v", w, got.Annotations, got.Created, want)
		}
	}
	d, err := connect(t, "").Apps.Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	managers, _ := json.Marshal(d.ManagedFields)
	if d.Generation != 2 || !strings.Contains(string(managers), `"manager":"syncer"`) {
		t.Errorf("generation %d, want 2; managers %s", d.Generation, managers)
	}
}

func TestAnErrorNamesTheWorkload(t *testing.T) {
	t.Parallel()
	c, ns := connect(t, ""), cluster.Namespace(t)
	w := targets.Workload{Kind: "deployment", Namespace: ns, Name: "absent"}
	_, err := c.PodTemplate(t.Context(), w)
	for _, err := range []error{err, c.Annotate(t.Context(), w, "1", nil)} {
		if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "deployment/absent of namespace "+ns) {
			t.Errorf("error %v, want that the workload is not found", err)
		}
	}
	w.Kind = "job"
	_, err = c.PodTemplate(t.Context(), w)
	for _, err := range []error{err, c.Annotate(t.Context(), w, "1", nil)} {
		if err == nil || !strings.Contains(err.Error(), `"job"`) {
			t.Errorf("error %v, want that there is no such kind", err)
		}
	}
	if n := len(cluster.Calls(t, func(c kubetest.Call) bool { return c.Namespace == ns && c.Name == "absent" })); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

// TestASecretIsAnnotatedAsItWasRead: if another client writes meanwhile, it is read again.
func TestASecretIsAnnotatedAsItWasRead(t *testing.T) {
	t.Parallel()
	const name = "conjur.org/x"
	for _, c := range []struct {
		verbs  []string
		others int // writes of another client, each between a read and the write
		looks  int
		done   bool
	}{
		{[]string{"get", "patch"}, 0, 1, true},
		{[]string{"get", "update"}, 0, 1, true},
		{[]string{"get", "patch"}, 4, 5, true},
		{[]string{"get", "patch"}, 5, 5, false},
		{[]string{"get"}, 0, 1, false},
	} {
		ns := cluster.Namespace(t)
		cluster.Bind(t, ns, "app", rules("secrets", c.verbs...))
		api, client := secrets(t, ns), connect(t, cluster.Token(t, ns, "app"))
		create(t, api, managed("db", map[string]string{"key": "value"}))
		var seen []string
		err := client.AnnotateSecret(t.Context(), ns, "db", name, func(before string) string {
			if seen = append(seen, before); len(seen) <= c.others {
				patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"other %d"}}}`, name, len(seen))
				if _, err := api.Patch(t.Context(), "db", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
					t.Error(err)
				}
			}
			return before + ", ours"
		})
		if (err == nil) != c.done || err != nil && !strings.Contains(err.Error(), "annotating secret "+ns+"/db") {
			t.Errorf("%+v: error %v", c, err)
		}
		last := ""
		if c.others > 0 {
			last = fmt.Sprintf("other %d", min(c.others, c.looks-1))
		}
		if len(seen) != c.looks || seen[len(seen)-1] != last {
			t.Errorf("%+v: annotations %q were read", c, seen)
		}
		s, err := api.Get(t.Context(), "db", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Annotations[name]; strings.HasSuffix(got, ", ours") != c.done || string(s.Data["key"]) != "value" {
			t.Errorf("%+v: the annotation is %q, and %d data are left", c, got, len(s.Data))
		}
	}
}
