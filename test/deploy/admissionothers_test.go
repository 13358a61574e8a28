package deploy_test

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/test/proctest"
)

// mayDoAll is a policed namespace whose release was given every right to the
// resources of some groups by somebody, and clients of all groups: of an
// administrator, and as the release.
func mayDoAll(t *testing.T, values string, groups ...string) (namespace string, admin, release kubernetes.Interface) {
	t.Helper()
	p := policeWith(t, values)
	cluster.Bind(t, p.name, "r", rbacv1.PolicyRule{APIGroups: groups, Resources: []string{"*"}, Verbs: []string{"*"}})
	admin, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	if release, err = kubernetes.NewForConfig(cluster.ConfigFor(cluster.Token(t, p.name, "r"))); err != nil {
		t.Fatal(err)
	}
	return p.name, admin, release
}

// inForce waits until the policy refuses what it is to refuse.
func inForce(t *testing.T, try func(ctx context.Context, dryRun []string) error) {
	t.Helper()
	proctest.Eventually(t, "the policy is in force", func() bool {
		err := try(t.Context(), []string{metav1.DryRunAll})
		return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
	})
}

func TestPolicyKeepsToTheRestartsOfWorkloads(t *testing.T) {
	ns, admin, release := mayDoAll(t, connection, "apps")
	labels := map[string]string{"app": "shop"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"team": "shop"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "shop", Image: "shop"}}},
	}
	meta := metav1.ObjectMeta{Name: "shop", Namespace: ns, Annotations: map[string]string{"team": "shop"}}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}
	_, err := admin.AppsV1().Deployments(ns).Create(t.Context(), deployment, metav1.CreateOptions{})
	if err == nil {
		_, err = admin.AppsV1().StatefulSets(ns).Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = admin.AppsV1().DaemonSets(ns).Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	merge := func(ctx context.Context, kind, subresource, patch string, dryRun ...string) error {
		return release.AppsV1().RESTClient().Patch(types.MergePatchType).Namespace(ns).Resource(kind).Name("shop").SubResource(strings.Fields(subresource)...).
			VersionedParams(&metav1.PatchOptions{DryRun: dryRun}, metav1.ParameterCodec).Body([]byte(patch)).Do(ctx).Error()
	}
	inForce(t, func(ctx context.Context, dryRun []string) error {
		return merge(ctx, "deployments", "", `{"spec":{"replicas":0}}`, dryRun...)
	})
	const only = "nothing of a workload but the restart annotations of its Pods"
	for _, kind := range []string{"deployments", "statefulsets", "daemonsets"} {
		for _, c := range []struct{ what, patch, want string }{
			{"restarted", `{"spec":{"template":{"metadata":{"annotations":{"` + notify.TemplateAnnotation("db") + `":"3"}}}}}`, ""},
			{"restarted again", `{"spec":{"template":{"metadata":{"annotations":{"` + notify.TemplateAnnotation("db") + `":"4","` + notify.TemplateAnnotation("tls") + `":"1"}}}}}`, ""},
			{"image", `{"spec":{"template":{"spec":{"containers":[{"name":"shop","image":"evil"}]}}}}`, only},
			{"a second container", `{"spec":{"template":{"spec":{"initContainers":[{"name":"a","image":"evil"}]}}}}`, only},
			{"service account", `{"spec":{"template":{"spec":{"serviceAccountName":"admin"}}}}`, only},
			{"a folder of the node", `{"spec":{"template":{"spec":{"volumes":[{"name":"a","hostPath":{"path":"/"}}]}}}}`, only},
			{"environment", `{"spec":{"template":{"spec":{"containers":[{"name":"shop","image":"shop","envFrom":[{"secretRef":{"name":"a"}}]}]}}}}`, only},
			{"a label of its Pods", `{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`, only},
			{"another annotation of its Pods", `{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}`, only},
			{"an annotation of its Pods changed", `{"spec":{"template":{"metadata":{"annotations":{"team":"b"}}}}}`, only},
			{"an annotation of its Pods removed", `{"spec":{"template":{"metadata":{"annotations":{"team":null}}}}}`, only},
			{"all annotations of its Pods removed", `{"spec":{"template":{"metadata":{"annotations":null}}}}`, only},
			{"a revision that is no number", `{"spec":{"template":{"metadata":{"annotations":{"` + notify.TemplateAnnotation("db") + `":"x"}}}}}`, only},
			{"history", `{"spec":{"revisionHistoryLimit":1}}`, only},
			{"label", `{"metadata":{"labels":{"a":"b"}}}`, only},
			{"annotation", `{"metadata":{"annotations":{"team":"b"}}}`, only},
			{"finalizer", `{"metadata":{"finalizers":["example.com/a"]}}`, only},
			{"owner", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"b"}]}}`, only},
		} {
			assertRefused(t, kind+": "+c.what, merge(t.Context(), kind, "", c.patch), c.want)
		}
		assertRefused(t, kind+": status", merge(t.Context(), kind, "status", `{"status":{"observedGeneration":9}}`), only)
		err := release.AppsV1().RESTClient().Delete().Namespace(ns).Resource(kind).Name("shop").Do(t.Context()).Error()
		assertRefused(t, kind+": deleted", err, "creates and deletes no workload")
	}
	for _, kind := range []string{"deployments", "statefulsets"} {
		assertRefused(t, kind+": no Pods", merge(t.Context(), kind, "", `{"spec":{"replicas":0}}`), only)
		assertRefused(t, kind+": scaled", merge(t.Context(), kind, "scale", `{"spec":{"replicas":0}}`), only)
	}
	deployment.Name = "new"
	_, err = release.AppsV1().Deployments(ns).Create(t.Context(), deployment, metav1.CreateOptions{})
	assertRefused(t, "created", err, "creates and deletes no workload")
}

func TestPolicyKeepsToOneLease(t *testing.T) {
	for name, c := range map[string]struct{ values, own string }{
		"elects":   {connection, ""},
		"does not": {conjurWith("leaderElection: {enabled: false}") + "replicas: 1", "uses only its own Lease"},
	} {
		t.Run(name, func(t *testing.T) {
			ns, admin, release := mayDoAll(t, c.values, "coordination.k8s.io")
			leases := release.CoordinationV1().Leases(ns)
			lease := func(name, generate string) *coordinationv1.Lease {
				return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, GenerateName: generate}}
			}
			if _, err := admin.CoordinationV1().Leases(ns).Create(t.Context(), lease("other", ""), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			const only = "uses only its own Lease"
			inForce(t, func(ctx context.Context, dryRun []string) error {
				_, err := leases.Create(ctx, lease("another", ""), metav1.CreateOptions{DryRun: dryRun})
				return err
			})
			_, err := leases.Create(t.Context(), lease("", "r"), metav1.CreateOptions{})
			assertRefused(t, "any name", err, only)
			_, err = leases.Patch(t.Context(), "other", types.MergePatchType, []byte(`{"spec":{"holderIdentity":"a"}}`), metav1.PatchOptions{})
			assertRefused(t, "another", err, only)
			assertRefused(t, "another deleted", leases.Delete(t.Context(), "other", metav1.DeleteOptions{}), only)
			_, err = leases.Create(t.Context(), lease("r", ""), metav1.CreateOptions{})
			assertRefused(t, "created", err, c.own)
			if c.own == "" {
				_, err = leases.Patch(t.Context(), "r", types.MergePatchType, []byte(`{"spec":{"holderIdentity":"a"}}`), metav1.PatchOptions{})
				assertRefused(t, "taken", err, "")
				assertRefused(t, "deleted", leases.Delete(t.Context(), "r", metav1.DeleteOptions{}), only)
			}
		})
	}
}

func TestPolicyKeepsToEventsOfItsOwn(t *testing.T) {
	ns, admin, release := mayDoAll(t, connection, "", "events.k8s.io")
	event := func(name, component, controller string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}, InvolvedObject: corev1.ObjectReference{Kind: "Secret", Namespace: ns, Name: "db"},
			Type: corev1.EventTypeNormal, Reason: "Synced", Source: corev1.EventSource{Component: component}, ReportingController: controller, ReportingInstance: "a",
		}
	}
	if _, err := admin.CoreV1().Events(ns).Create(t.Context(), event("theirs", "kubelet", "kubelet"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const only = "writes only Events of the component syncer"
	events := release.CoreV1().Events(ns)
	create := func(e *corev1.Event) error {
		_, err := events.Create(t.Context(), e, metav1.CreateOptions{})
		return err
	}
	merge := func(name, patch string) error {
		_, err := events.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	inForce(t, func(ctx context.Context, dryRun []string) error {
		_, err := events.Create(ctx, event("forged", "kubelet", "kubelet"), metav1.CreateOptions{DryRun: dryRun})
		return err
	})
	assertRefused(t, "created", create(event("ours", "syncer", "syncer")), "")
	assertRefused(t, "counted", merge("ours", `{"count":2}`), "")
	assertRefused(t, "of another component", create(event("a", "kubelet", "syncer")), only)
	assertRefused(t, "of another controller", create(event("a", "syncer", "kubelet")), only)
	assertRefused(t, "of nobody", create(event("a", "", "")), only)
	assertRefused(t, "another's", merge("theirs", `{"message":"a"}`), only)
	assertRefused(t, "another's taken over", merge("theirs", `{"source":{"component":"syncer"},"reportingComponent":"syncer"}`), only)
	assertRefused(t, "given away", merge("ours", `{"source":{"component":"kubelet"}}`), only)
	assertRefused(t, "deleted", events.Delete(t.Context(), "ours", metav1.DeleteOptions{}), only)
	_, err := release.EventsV1().Events(ns).Create(t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: ns}, EventTime: metav1.NowMicro(), ReportingController: "kubelet", ReportingInstance: "a",
		Action: "a", Reason: "a", Type: corev1.EventTypeNormal, Regarding: corev1.ObjectReference{Kind: "Secret", Namespace: ns, Name: "db"},
	}, metav1.CreateOptions{})
	assertRefused(t, "by the other group", err, only)
}
