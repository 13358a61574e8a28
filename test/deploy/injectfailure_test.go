package deploy_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/test/deploy"
	"github.com/secretsync/syncer/test/proctest"
)

// TestPodsWithoutThePolicyAreNoticed: without the policy that adds Syncer, a Pod is rejected
// with one sentence, or stays unchanged.
func TestPodsWithoutThePolicyAreNoticed(t *testing.T) {
	apiServer := deploy.Connect(t, cluster.Config())
	for values, lenient := range map[string]bool{"": false, "inject: {failurePolicy: Ignore}": true} {
		i := inject(t, values)
		for _, o := range i.release(t, "r").Objects(t) {
			if o.GetKind() != "MutatingAdmissionPolicy" {
				continue
			}
			if err := apiServer.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		warned := &warnings{}
		proctest.Eventually(t, "no Pod with Syncer", func() bool {
			warned = &warnings{}
			made, err := i.tryWith(t, i.pod(), warned)
			if err != nil {
				warned.texts = append(warned.texts, err.Error())
			}
			return (err == nil) == lenient && (err != nil || !isInjected(made) && len(made.Spec.Volumes) == 0)
		})
		if want := "Syncer cannot be added to the Pod: the MutatingAdmissionPolicy r." + i.namespace + "-inject is missing"; len(warned.texts) != 1 || !strings.Contains(warned.texts[0], want) {
			t.Errorf("%q, want %q", warned.texts, want)
		}
	}
}

// awaitSyncer waits until a Pod gets Syncer, and returns it.
func (i injection) awaitSyncer(t *testing.T, pod *corev1.Pod) (made *corev1.Pod) {
	t.Helper()
	var err error
	warned := &warnings{}
	defer func() {
		if t.Failed() {
			t.Log(err, warned.texts)
		}
	}()
	proctest.Eventually(t, "a Pod with Syncer", func() bool {
		warned = &warnings{}
		made, err = i.tryWith(t, pod, warned)
		return err == nil && isInjected(made)
	})
	return made
}

// TestUpgradeChangesNewPodsOnly: an existing Pod stays unchanged, also if its labels change
// or it gets an ephemeral container.
func TestUpgradeChangesNewPodsOnly(t *testing.T) {
	i := inject(t, "image: {tag: first}")
	i.account(t)
	client := pods(t, i.namespace, &warnings{})
	old, err := client.Create(t.Context(), i.pod(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plain := i.pod()
	delete(plain.Labels, i.label)
	bare, err := client.Create(t.Context(), plain, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	i.values["image"] = map[string]any{"tag": "second"}
	deploy.Connect(t, cluster.Config()).Upgrade(t, i.release(t, "r"))
	proctest.Eventually(t, "a Pod with the second image", func() bool {
		made, err := i.try(t, i.pod())
		return err == nil && made.Spec.InitContainers[0].Image == "secretsync/syncer:second"
	})

	debug := confined("debug")
	old.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: debug.Name, Image: debug.Image, SecurityContext: debug.SecurityContext,
	}}}
	got, err := client.UpdateEphemeralContainers(t.Context(), old.Name, old, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Spec.EphemeralContainers[0].VolumeMounts) > 0 || len(got.Spec.InitContainers) != 1 || got.Spec.InitContainers[0].Image != "secretsync/syncer:first" {
		t.Errorf("the old Pod is %+v", got.Spec)
	}
	for name, label := range map[string]string{old.Name: "yes", bare.Name: "true"} {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{i.label: label}}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err = client.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Errorf("the label %s: %v", label, err)
		} else if isInjected(got) != (name == old.Name) {
			t.Errorf("with the label %s the Pod is %+v", label, got.Spec)
		}
	}
}

// account makes the service account of the Pods. Without controllers there is none.
func (i injection) account(t *testing.T) {
	t.Helper()
	if _, err := cluster.Core.ServiceAccounts(i.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestReleasesInjectTheirOwnLabel: a Pod with the labels of two releases gets Syncer
// once. After helm uninstall, a label does nothing.
func TestReleasesInjectTheirOwnLabel(t *testing.T) {
	first, second := inject(t, "image: {tag: first}"), inject(t, "image: {tag: second}")
	for want, i := range map[string]injection{"first": first, "second": second} {
		made, err := first.try(t, i.pod())
		if err != nil || made.Spec.InitContainers[0].Image != "secretsync/syncer:"+want {
			t.Errorf("%s: %v", want, err)
		}
	}
	both := first.pod()
	both.Labels[second.label] = "init"
	made, err := first.try(t, both)
	if err != nil || len(made.Spec.InitContainers) != 1 || len(made.Spec.Volumes) != 4 || len(made.Spec.Containers[0].VolumeMounts) != 2 {
		t.Errorf("both: %v, %+v", err, made)
	}

	apiServer := deploy.Connect(t, cluster.Config())
	for _, o := range first.release(t, "r").Objects(t) {
		if err := apiServer.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	proctest.Eventually(t, "a Pod without Syncer", func() bool {
		made, err := first.try(t, first.pod())
		return err == nil && !isInjected(made) && len(made.Spec.Volumes) == 0
	})
	if made, err := second.try(t, second.pod()); err != nil || !isInjected(made) {
		t.Errorf("of the other release: %v", err)
	}
}

// TestLabelOfANamespace: if inject.namespaces is true, the label applies to all Pods of the
// namespace that have no label themselves.
func TestLabelOfANamespace(t *testing.T) {
	i, pods := inject(t, "inject: {namespaces: true}"), inject(t, "")
	bare := func(i injection) *corev1.Pod {
		pod := i.pod()
		delete(pod.Labels, i.label)
		return pod
	}
	i.labelNamespace(t, "init")
	pods.labelNamespace(t, "init")
	if made := i.awaitSyncer(t, bare(i)); made.Spec.InitContainers[0].RestartPolicy != nil {
		t.Error("a sidecar, want an init container")
	}
	if made, err := pods.try(t, bare(pods)); err != nil || isInjected(made) {
		t.Errorf("without the value: %v", err)
	}
	for value, want := range map[string]int{"false": 0, "true": 1, "init": 1} {
		pod := i.pod()
		pod.Labels[i.label] = value
		made, err := i.try(t, pod)
		if err != nil || len(made.Spec.InitContainers) != want || want == 1 && (made.Spec.InitContainers[0].RestartPolicy == nil) != (value == "init") {
			t.Errorf("a Pod with the label %s: %v", value, err)
		}
	}
	i.labelNamespace(t, "perhaps")
	proctest.Eventually(t, "a message", func() bool {
		_, err := i.try(t, bare(i))
		return err != nil && strings.Contains(err.Error(), `to "true", "init" or "false"`)
	})
	i.labelNamespace(t, "false")
	proctest.Eventually(t, "a Pod without Syncer", func() bool {
		made, err := i.try(t, bare(i))
		return err == nil && !isInjected(made)
	})
}

// TestInjectionGrantsNothing: the release has no account and no Role. A Pod with Syncer has
// no other account, no right on the node, and only Syncer's volumes in addition.
func TestInjectionGrantsNothing(t *testing.T) {
	i := inject(t, "")
	kinds := []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	for _, o := range i.release(t, "r").Objects(t) {
		if !slices.Contains(kinds, o.GetKind()) {
			t.Errorf("the release has a %s", o.GetKind())
		}
	}
	pod := i.pod()
	pod.Spec.ServiceAccountName = "own"
	made, err := i.try(t, pod)
	if err != nil {
		t.Fatal(err)
	}
	s := made.Spec
	if s.ServiceAccountName != "own" || s.AutomountServiceAccountToken != nil || s.HostNetwork || s.HostPID || s.HostIPC {
		t.Errorf("the Pod is %+v", s)
	}
	for _, v := range s.Volumes {
		if v.DownwardAPI == nil && v.EmptyDir == nil && v.Projected == nil {
			t.Errorf("a volume %+v", v)
		}
	}
}

// TestRootPodsAreToldWhy: the message says that Syncer does not run as root.
func TestRootPodsAreToldWhy(t *testing.T) {
	i := inject(t, "")
	i.namespace = cluster.Namespace(t) // that admits them
	pod := i.pod()
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0))}
	if _, err := i.try(t, pod); err == nil || !strings.Contains(err.Error(), "runAsUser is 0") {
		t.Errorf("refused with %v", err)
	}
	pod.Spec.SecurityContext, pod.Spec.Containers[0].SecurityContext = nil, &corev1.SecurityContext{RunAsUser: new(int64(0))}
	if _, err := i.try(t, pod); err != nil {
		t.Error(err)
	}
}

// TestTheGuideOfTheInjection: with the values of the how-to, its example gets Syncer.
func TestTheGuideOfTheInjection(t *testing.T) {
	_, values, _ := strings.Cut(string(readFile(t, "../../docs/howto/inject.md")), "```yaml\n   # values.yaml\n")
	values, _, _ = strings.Cut(values, "```")
	ns := restricted(t)
	apiServer := deploy.Connect(t, cluster.Config())
	apiServer.Install(t, deploy.Release{Name: "inject", Namespace: ns, Values: values})
	text := bytes.ReplaceAll(readFile(t, "../../deploy/examples/inject.yaml"), []byte("namespace: shop"), []byte("namespace: "+ns))
	example := deploy.Decode(t, text)
	if _, err := apiServer.Create(t.Context(), ns, example[0], false); err != nil { // its service account
		t.Fatal(err)
	}
	proctest.Eventually(t, "the example with Syncer", func() bool {
		made, err := apiServer.Create(t.Context(), ns, podOf(t, example[1]), true)
		if err != nil {
			t.Log(err)
			return false
		}
		init, _, err := unstructured.NestedSlice(made.Object, "spec", "initContainers")
		return err == nil && len(init) == 1
	})
}

// TestOlderClustersAreTold: the chart fails there with one sentence.
func TestOlderClustersAreTold(t *testing.T) {
	const kind = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
	for what, c := range map[string]struct {
		version string
		serves  []string
		known   bool
	}{
		"1.35, no cluster":       {"v1.35.4", nil, false},
		"1.36, no cluster":       {"v1.36.0", nil, true},
		"1.37 of a provider":     {"v1.37.2-gke.1", nil, true},
		"1.36":                   {"v1.36.3", []string{"v1", "v1/Pod", "admissionregistration.k8s.io/v1", kind}, true},
		"1.36, switched off":     {"v1.36.3", []string{"v1", "v1/Pod", "admissionregistration.k8s.io/v1"}, false},
		"1.35, the beta version": {"v1.35.4", []string{"v1/Pod", "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"}, false},
	} {
		_, err := deploy.Release{Values: connection + "inject: {enabled: true}", KubeVersion: c.version, APIVersions: c.serves}.Render()
		if (err == nil) != c.known || err != nil && !strings.Contains(err.Error(), "does not know MutatingAdmissionPolicy") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for version, known := range map[string]bool{"v1.35.4": false, "v1.36.0": true, "v1.36.3-eks-1": true, "v1.37.2": true} {
		_, err := deploy.Release{Values: connection + "shape: example\nsidecar: {restartInPlace: true}", KubeVersion: version}.Render()
		if (err == nil) != known || err != nil && !strings.Contains(err.Error(), "in place since 1.36, and this is "+version) {
			t.Errorf("restarts in place on %s: %v", version, err)
		}
	}
}
